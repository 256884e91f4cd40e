"""A discrete-event engine: any topology, millions of records in a second."""
