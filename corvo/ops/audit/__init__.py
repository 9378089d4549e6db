"""Operations on the audit log, which shard 0 keeps. They have no route."""
