"""Tests of the shard process, one file per module of `shards/`. Shared parts are in `rig.py`."""
