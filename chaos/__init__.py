"""Fault injection with real processes: start or attach to a server, put load on it, inject faults, check every promise.

Start with `python -m chaos.kill_shards --help` for one node. For clusters there are `chaos.kill_nodes`,
`chaos.partition`, `chaos.freeze_leader` and `chaos.rolling_restart`, which share `trial`. `node` controls the processes
of a node, `cluster` several nodes, and `proxy` the network between them. `workload` makes the load and records what the
server acknowledged, `state` reads the shards and read.db, and `checkers` compares.
"""
