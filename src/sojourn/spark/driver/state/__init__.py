"""What one start leaves for the next."""
