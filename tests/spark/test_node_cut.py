"""A machine that is cut off the network under load, and comes back with all that it had."""

import pytest

from sojourn_trial.cluster.trial_network import why_not
from sojourn_trial.kills import node_cut as spark_node_cut

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.usefixtures("jars")
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_machine_that_is_cut_off_and_comes_back_changes_no_result(short_folder):
    """Its tasks and Kafka clients go on where they were, 90 s later."""
    (cut,), (plain, once) = spark_node_cut.run(
        short_folder, nodes=2, cuts=1, lasts_s=90.0, per_s=15.0
    )
    assert cut.tasks
    assert cut.restarts
    assert not plain.lost
    assert not plain.wrong
    assert once.exact
