"""Decisions: the number of processors of each operator, and the reason for it."""
