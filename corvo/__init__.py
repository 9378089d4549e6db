"""What a job is and what each operation does.

The core (everything here but the leaves `client` and `cli`) does no I/O, reads no clock and rolls no dice:
time, identifiers and storage are handed in. Read `lifecycle.py`, then `ops/jobs/ack.py`, then `engine.py`.
"""

__version__ = "0.1.0"
