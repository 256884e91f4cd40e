"""The applications of the papers, of which hosts and the driver are killed: results are exact.

The options are in `sojourn_papers.app_kills`, or `--help`.
"""

import sys

from sojourn_papers.app_kills import main

if __name__ == "__main__":
    sys.exit(main())
