"""The command line: commands, supervision, the live view. A leaf: nothing imports it.

`main.py` declares the commands, `cluster.py` and `node.py` those of their groups, on what `asking.py` holds for all;
`server.py` starts a node, with `meet.py` (how it finds others), `programs.py` (what runs) and `supervise.py` (what
keeps it running); `local.py` starts several, with `layout.py` (names and ports); `show.py` and `show_cluster.py` are
answers on the screen; `screen/top` is the live view.
"""
