"""Plots, drawn with matplotlib."""
