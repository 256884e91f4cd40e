"""The host's side of Spark's batches: what is taken, open, and leaves."""
