"""A host dies at each step between log, answer, cut and commit: results and states are exact.

The options are in `sojourn_trial.kills.at_steps`, or `--help`.
"""

import sys

from sojourn_trial.kills.at_steps import main

if __name__ == "__main__":
    sys.exit(main())
