"""Bulk actions: one action on many jobs, within a request or as an operation that survives this process."""
