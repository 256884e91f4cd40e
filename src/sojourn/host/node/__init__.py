"""Processors on other nodes: the agent of a node, and what a host says to it."""
