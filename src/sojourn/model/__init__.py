"""The model: predicted sojourn times of operators and of the whole network."""
