"""The parts of the read database that its writer and its readers share: schema, DDL, text index."""
