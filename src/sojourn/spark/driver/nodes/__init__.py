"""The nodes of an application: executors of Spark, and the agents on them."""
