"""Sinks at which nothing arrives twice."""
