"""The applications of the papers: examples, and loads to measure the engine with."""
