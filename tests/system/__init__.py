"""Real processes: few, slow, and the only proof that the parts fit."""
