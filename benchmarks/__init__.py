"""Benchmarks: programs that print ratios measured within one run. They are not tests: no figure fails a build."""
