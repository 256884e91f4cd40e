"""Plots, drawn with matplotlib and written to a path, whose suffix determines the format.

All that draw raise `BadInput` if matplotlib is missing, `BadFile` if the file cannot be written.
"""
