"""The agent of a node: starts processors there for hosts, and measures the node."""
