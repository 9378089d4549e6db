"""The state of one shard, over any ordered map.

`keys` defines the bytes of keys, `kv` the maps, `tables` the typed access; `pending`, `leases` and `due` are the
indexes for claiming and for time; `transitions` is the only code that moves a job from state to state.
"""
