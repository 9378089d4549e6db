"""The mirror: the process that follows the shards and is the only writer of the read database."""
