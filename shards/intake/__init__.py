"""Calls into a shard: admission, waiting fetches, waits for events, reads."""
