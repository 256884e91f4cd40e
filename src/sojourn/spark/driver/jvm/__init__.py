"""Java: Spark's session, jars, and processes that end with this one."""
