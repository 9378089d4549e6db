"""Bulk actions of the gateway."""
