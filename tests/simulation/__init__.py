"""Whole clusters in one process from one seed: real Raft, real machine, simulated clock, network and disk."""
