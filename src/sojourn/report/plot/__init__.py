"""Plots, drawn with matplotlib and written to a path, whose suffix determines the format.

Functions raise `BadInput` if matplotlib is missing, `BadFile` if the file cannot be written.
"""
