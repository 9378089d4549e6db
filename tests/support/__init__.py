"""Builders, fakes and models: the only shared helpers of the tests."""
