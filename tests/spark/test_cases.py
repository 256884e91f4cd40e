"""Hard cases of `spark_cases`: roots open for many batches, a quiet source, wide fan-out."""

import pytest

from sojourn_trial.cases import cases as spark_cases

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", spark_cases.CASES)
def test_what_is_promised_holds(jars, short_folder, name, record_property):
    """Each rule that does not hold is named, with the figures of the run."""
    found = spark_cases.CASES[name](short_folder, jars=jars)
    record_property("figures", "\n".join(found.figures))
    assert not found.broken, "\n".join([*found.broken, *found.figures])
