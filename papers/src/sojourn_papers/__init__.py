"""Applications and experiments of the papers that Sojourn implements."""
