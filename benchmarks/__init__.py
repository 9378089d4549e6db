"""Benchmarks: programs that print ratios measured in one run. Not tests: no figure fails a build."""
