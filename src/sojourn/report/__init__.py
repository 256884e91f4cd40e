"""What plans, runs and comparisons look like: on a terminal, plotted, as a page, as JSON."""
