"""The plans of Spark's queries, without a broker and without a host."""

import pytest

from sojourn.spark.driver.query.query_builder import query_plans
from spark.shop import app

pytestmark = pytest.mark.spark


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("jars")
def test_plans_of_parts_and_of_sparks_own_operators_are_told():
    plans = query_plans(app, "spark.shop:app")
    assert list(plans) == ["price", "dear", "sums"]
    assert all("StreamingRelation kafka" in plan for plan in plans.values())
    assert "MapInArrow" in plans["price"]
    assert "padding, 0x00…" in plans["price"]  # and not all of it
    assert "StateStoreSave" in plans["sums"]
