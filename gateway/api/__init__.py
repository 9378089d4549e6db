"""Endpoints that need more than one call to one shard: stream, events, fetch, bulk."""
