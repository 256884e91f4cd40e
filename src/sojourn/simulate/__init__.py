"""A discrete-event simulator for any topology: millions of records per second."""
