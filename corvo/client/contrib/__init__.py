"""Glue for frameworks: each module needs its framework, and the client needs none of them."""
