"""Tables and charts for a terminal."""
