"""Shared by all processes of a node: settings, addresses, the data directory, certificates."""
