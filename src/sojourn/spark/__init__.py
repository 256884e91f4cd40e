"""The engine on Spark, with one folder for each kind of process."""
