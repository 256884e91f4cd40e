"""Files of state and logs: atomic, checksummed, locked, private, rotated."""
