"""The page of a run, for a browser."""
