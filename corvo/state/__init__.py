"""The state of one shard, over any ordered map.

`keys` knows the bytes, `kv` the maps, `tables` the typed access, `pending`, `leases` and `due` the three indexes
that fetching and time need, `effects` the only code that moves a job from state to state.
"""
