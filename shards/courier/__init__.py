"""Errands to other shards: delivery in order, and the sockets for it."""
