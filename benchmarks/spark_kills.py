"""Whatever is killed, whenever: results are compared with what plain Python makes of the input.

The options are in `sojourn_trial.kills.random_kills`, or `--help`.
"""

import sys

from sojourn_trial.kills.random_kills import main

if __name__ == "__main__":
    sys.exit(main())
