"""The agent of a node: it starts the processors of hosts there, and measures the node."""
