import pytest

from sojourn.act.policy.drs.quiet_hours import QuietHours
from sojourn.errors import BadInput


@pytest.mark.parametrize(("since_s", "until_s"), [(-1, 5), (0, 90_000), (60, 60)])
def test_hours_that_are_none_are_refused(since_s, until_s):
    with pytest.raises(BadInput):
        QuietHours(since_s, until_s)
