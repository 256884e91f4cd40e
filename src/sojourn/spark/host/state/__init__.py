"""The state of operators, by key: in memory, in cuts, and on disk."""
