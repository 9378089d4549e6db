"""Errands: what one shard asks of another. `errand.py` says what they are, `register.py` lists them."""
