"""A run of an application: its start, its processes and queries, its health."""
