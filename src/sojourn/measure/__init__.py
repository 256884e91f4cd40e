"""Measurement: from counters of processors to observations of operators."""
