"""`python -m sojourn` is the same as `sojourn`."""

from sojourn.cli import main

main()
