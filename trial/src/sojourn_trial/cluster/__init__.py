"""A Spark master and workers on this machine, with delays between them."""
