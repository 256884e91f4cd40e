"""Java: the Spark session, jars, and child processes that end with this process."""
