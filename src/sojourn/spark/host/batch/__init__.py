"""The host's side of Spark's batches: roots taken, open records, and results that leave."""
