"""The process that runs an operator: its queue, its processors, measuring. No Spark in here."""
