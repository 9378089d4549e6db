"""The reads of `read.db`, one file for each query of `corvo/queries` that the gateway answers by itself."""
