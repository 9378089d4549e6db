"""Operations of bulk actions: one action on many jobs of a shard, and the record of a long-running action."""
