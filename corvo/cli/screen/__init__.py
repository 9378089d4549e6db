"""Output for people: tables, the live view, keys."""
