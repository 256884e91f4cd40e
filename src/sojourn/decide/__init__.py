"""What should happen: how many processors for each operator, and why."""
