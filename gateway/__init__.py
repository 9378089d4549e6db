"""What makes a job reachable: HTTP, routing to shards, the mirror and what is read from it. Asynchronous throughout.

Start with `app.py` (how a request travels), then `links.py` (how shards are asked).
"""
