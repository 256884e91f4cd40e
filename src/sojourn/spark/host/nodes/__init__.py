"""Connections of a host to the agents of nodes."""
