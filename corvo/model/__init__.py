"""What a job is: records, the table of its life, limits, errors. Pure values; imports nothing else of Corvo."""
