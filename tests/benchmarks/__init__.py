"""Tests of what measures: that it counts right and shows only what was measured. None asserts a speed."""
