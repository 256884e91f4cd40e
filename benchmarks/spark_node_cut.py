"""A machine is cut off the network under load, and comes back with all that it had running.

The options are in `sojourn_trial.kills.node_cut`, or `--help`.
"""

import sys

from sojourn_trial.kills.node_cut import main

if __name__ == "__main__":
    sys.exit(main())
