"""Runs topologies on Spark, with what that needs from Java; alone in importing pyspark."""
