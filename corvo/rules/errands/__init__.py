"""Errands: work that one shard gives to another. `errand.py` defines them, `register.py` lists them."""
