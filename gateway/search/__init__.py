"""Reads of the read database: one file for each query in `corvo/queries` that the gateway answers itself."""
