"""Programs that run with the rivals' own Python or Node.js and their libraries. They import nothing of ours."""
