"""Installs the kill steps in each Python process that has this folder on its path.

Python imports it before anything else; see `kill_steps`.
"""

import sys
from pathlib import Path

if "sojourn.spark.host" in sys.orig_argv:
    from sojourn_trial.kills import kill_steps

    kill_steps.put_into_host()
elif any(Path(argument).name == "driven.py" for argument in sys.orig_argv):
    from sojourn_trial.kills import kill_steps

    kill_steps.put_into_driver()
