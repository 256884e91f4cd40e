"""Plans, runs and comparisons as tables, plots, HTML and JSON."""
