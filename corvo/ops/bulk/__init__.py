"""Operations of bulk actions: what a shard does to many jobs, and the record of an action that takes its time."""
