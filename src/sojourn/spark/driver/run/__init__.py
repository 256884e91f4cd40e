"""A run of an application: how it is started, what it consists of, and how it is."""
