"""Executors as nodes: where they are, what runs on them, how they come and go."""
