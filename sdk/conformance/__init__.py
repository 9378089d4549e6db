"""One suite for the clients and workers of every language: the same scenarios, against a real server."""
