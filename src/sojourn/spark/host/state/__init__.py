"""Keyed state of operators: in memory, in cuts, and on disk."""
