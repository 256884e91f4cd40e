"""The real-time query of a part, and what runs in its tasks."""
