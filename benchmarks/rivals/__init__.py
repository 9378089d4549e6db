"""Other job servers, measured as we measure ours, where they are installed.

To add one: a program in `programs/` that can send a job and be one when it arrives, and its line in `register.py`.
"""
