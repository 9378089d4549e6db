"""The documents, and `generate`, which writes docs/reference from the code."""
