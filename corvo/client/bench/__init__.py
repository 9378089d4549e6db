"""A load generator: what `corvo bench` runs.

`plan` says what is asked for, `links` how a connection is spoken to (`stream_link`, `http_link`), `engine` drives them,
`tally` counts, `report` puts it together. Errors and overloads are counted beside what succeeded and never left out. It
uses queues with names of its own, and deletes them afterwards.
"""
