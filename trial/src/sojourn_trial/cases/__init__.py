"""Loads that are hard on an engine: long-lived roots, large fan-outs, idle sources."""
