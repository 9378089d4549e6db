"""Checks of `corvo doctor`: `verdicts.py` judges measurements, pure; `machine.py` takes them here, `remote.py` from a
server.
"""
