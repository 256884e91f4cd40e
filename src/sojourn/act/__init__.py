"""What is worth doing now: from what is wanted to what is changed."""
