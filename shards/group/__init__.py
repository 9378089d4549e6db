"""The replicas of one shard: membership, forwarding of calls, messages, sockets between nodes."""
