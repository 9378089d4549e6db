"""Programs that run with the rivals' own Python or Node.js and libraries. They import nothing from this project."""
