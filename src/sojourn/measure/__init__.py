"""Measurement: counters of processors become observations of operators."""
