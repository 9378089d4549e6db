"""What makes a job survive: Raft, LevelDB, the replicated machine, the shard process. Synchronous throughout.

Start with `replica.py`: one turn of a replica, without any I/O of its own. `loop.py` is the only place that polls.
"""
