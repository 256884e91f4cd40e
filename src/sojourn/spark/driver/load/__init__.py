"""Records that are sent to sources, as a load."""
