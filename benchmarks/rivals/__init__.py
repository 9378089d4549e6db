"""Other job servers, measured like Corvo, if they are installed.

To add one, write a program in `programs/` that can send a job and run it, and add its line to `register.py`.
"""
