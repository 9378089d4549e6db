"""The client: what a request looks like (`calls`, pure) and a synchronous driver over httpx (`http`).

A leaf: nothing of the core imports it, and it needs none of the server's packages.
"""

DEFAULT_SERVER = "http://localhost:8080"
