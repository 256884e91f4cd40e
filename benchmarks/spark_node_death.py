"""How long after the death of a machine under load the target holds again.

The options are in `sojourn_trial.kills.node_death`, or `--help`.
"""

import sys

from sojourn_trial.kills.node_death import main

if __name__ == "__main__":
    sys.exit(main())
