"""Real processes, real faults: start or find a server, load it, hurt it, then check every promise.

`python -m chaos.kill_shards --help` is the front door for one node; for clusters there are `chaos.kill_nodes`,
`chaos.partition`, `chaos.freeze_leader` and `chaos.rolling_restart`, which share `trial`. `node` finds the processes,
`cluster` holds several nodes, `proxy` stands between them, `workload` makes the load and writes down what was promised,
`state` reads what the shards and read.db hold, `checkers` compares.
"""
