"""A Spark standalone cluster on this machine, with network delays between its nodes."""
