"""`corvo mcp`: a server of the Model Context Protocol over standard input and output.

`protocol.py` reads and writes messages, pure; `tools.py` derives the tools from the endpoints, pure; `session.py` joins
them to a Corvo server.
"""
