"""Connections to shards, for the gateway, the mirror and couriers. They have the sockets; `corvo/calls.py` decides."""
