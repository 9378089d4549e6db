"""The job model: records, the table of states, limits, errors. Pure values; imports no other part of Corvo."""
