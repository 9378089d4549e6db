"""The command line: commands, supervision, the live view. A leaf: nothing imports it.

`main.py` declares the commands; `server.py` starts a node, with `programs.py` (what runs) and `supervise.py` (what
keeps it running); `top.py` is the live view, with `dashboard.py` (what it shows) and `keyboard.py`.
"""
