"""Tests mirror the tree: one file per module, same path, same name with `test_`."""
