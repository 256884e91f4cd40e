"""A Spark standalone cluster on this machine, optionally with network delays."""
