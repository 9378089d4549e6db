"""Starting a node and keeping its processes running."""
