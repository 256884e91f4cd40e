"""What happened: counters, moments and distributions, from processors to operators."""
