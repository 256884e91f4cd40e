"""DRS: the fewest processors that keep a target, or the best use of a given number.

situation       the load now, what waits, what the model says of the processors there are
correction      how far the model was off lately
shortage        too slow                    -> more processors
surplus         more than the load needs    -> fewer
misallocation   as many, in the wrong place -> moved
requirement     the plan for the load, with a margin: what the three of them compare with
caution         when a change is worth its trouble
decision        what is done, and what is expected of it
"""

from sojourn.act.policy.drs.drs import Drs, policy

__all__ = ["Drs", "policy"]
