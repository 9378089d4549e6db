"""Real processes, real faults: start or find a server, load it, hurt it, then check every promise.

`python -m chaos.kill_shards --help` is the front door. `node` finds the processes, `workload` makes the load and
writes down what was promised, `state` reads what the shards and read.db hold, `checkers` compares.
"""
