"""Operations on batches, each asked of the one shard that counts the batch."""
