"""The read database as its writer and its readers both know it: schema, DDL, text index."""
