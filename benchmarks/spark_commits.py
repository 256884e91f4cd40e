"""Killed at the ends of batches, with records that take longer than two of them.

The options are in `sojourn_trial.kills.commits`, or `--help`.
"""

import sys

from sojourn_trial.kills.commits import main

if __name__ == "__main__":
    sys.exit(main())
