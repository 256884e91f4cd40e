"""Who gets which record: decisions, without side effects."""
