"""The rules that several operations share: creating jobs, batches, chains, schedules, cascades, errands."""
