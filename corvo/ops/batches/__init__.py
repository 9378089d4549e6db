"""Operations on batches. Each goes to the shard that counts the batch."""
