"""LevelDB, the Raft log in it, and what is written when."""
