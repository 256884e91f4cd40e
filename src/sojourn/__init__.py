"""Sojourn keeps streaming applications inside their latency target, on few processors."""
