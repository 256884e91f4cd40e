"""What must hold in three hard cases, with real kills and a broker of its own each.

The options are in `sojourn_trial.cases.cases`, or `--help`.
"""

import sys

from sojourn_trial.cases.cases import main

if __name__ == "__main__":
    sys.exit(main())
