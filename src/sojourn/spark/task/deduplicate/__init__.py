"""Deduplication before a sink."""
