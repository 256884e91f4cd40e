"""Processors: processes that run the functions of an application."""
