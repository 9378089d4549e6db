"""The security cases, S01 to S95: what a hostile client asks, what it is answered, and the tests that show it."""
