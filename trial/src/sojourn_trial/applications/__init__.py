"""Applications whose exact results can be computed from their input by plain Python."""
