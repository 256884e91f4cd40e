"""Assignment of records to processors: pure decisions, without side effects."""
