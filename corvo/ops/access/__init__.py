"""Changes to the records of access, on shard 0."""
