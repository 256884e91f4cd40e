"""A test bed: a Spark cluster on one machine, and kills of any part of an application."""
