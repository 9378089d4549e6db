"""The client of the shards: sending calls, following moved jobs, executing plans."""
