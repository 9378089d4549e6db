"""Fuzzing of everything that reads bytes of strangers, guided by coverage.

`targets` names the targets; each takes bytes and fails if a promise is broken. `run` looks for inputs that break one
(`make fuzz`). Inputs that did are kept under `inputs/` and play in the ordinary suite (`test_inputs.py`).
"""
