"""Tests of who sent a request."""
