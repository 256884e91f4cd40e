"""DRS: the fewest processors that meet a target, or the best use of a given number.

load_estimate   the current load, backlogs, and the prediction for the current processors
correction      the recent error of the model, and the target that compensates for it
requirement     the plan for the load with a margin, with which the next two compare
shortage        too slow: processors are added
surplus         more than the load needs: processors are removed, or moved
caution         whether a change is worth its cost
decision        the wish, and its prediction
"""

from sojourn.act.policy.drs.drs import Drs, policy

__all__ = ["Drs", "policy"]
