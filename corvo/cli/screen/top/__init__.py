"""`corvo top`: the live view of a server.

What it shows is pure: `looks` (the server's answers at one moment), `grid` (tables that fit a width), `panes` and
`jobs` (what stands in them), `header`, `detail` and `picture` (all lines of a screen). What keys do is pure too:
`session` (where the person is), `filters`, `actions`, `commands`. `polling` asks the server, `app` owns the terminal.
"""
