"""Rules that several operations share: job creation, batches, chains, schedules, cascades, errands."""
