"""Processors: the processes that run functions, and what is said to them."""
