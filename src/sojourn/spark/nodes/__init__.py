"""The nodes of an application: executors of Spark, their agents, and trial clusters."""
