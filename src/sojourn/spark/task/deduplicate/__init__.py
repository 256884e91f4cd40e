"""Filters of duplicates before a sink."""
