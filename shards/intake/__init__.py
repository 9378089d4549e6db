"""Calls into a shard: admission, waiting fetches, event listeners, reads."""
