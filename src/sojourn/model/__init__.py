"""What would happen: sojourn times of operators and of the whole network."""
