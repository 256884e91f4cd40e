"""Nodes: a trial cluster of several on this machine."""
