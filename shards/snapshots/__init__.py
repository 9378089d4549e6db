"""A shard's state on its way to a follower that is too far behind for the log."""
