"""Trials that kill processes of an application, and compare its results with its input."""
