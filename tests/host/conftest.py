"""Hosts for relays under test."""

import pytest

from host.relaying import Query, route_of
from sojourn.app.reminder import reminders_of
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.wire.host_address import HostAddress
from sojourn.spark.wire.host_settings import HostSettings, OperatorSettings


@pytest.fixture
def controller(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "tests")
    with Controller(tmp_path / "all", tasks=lambda _stage: 1) as running:
        yield running


@pytest.fixture
def host(tmp_path, controller):
    """Start the host of an operator of the test's application, and return its query."""

    def start(
        operator="split",
        *,
        everyone=False,
        stateful=False,
        ttl_s=None,
        route=None,
        relay_timeout_s=10.0,
        application="unit.spark.host.application:app",
        nulls=False,
        **fields,
    ):
        settings = OperatorSettings(
            job="sojourn.spark.processor.operator_job:of_application",
            argument=f"{application} {operator}",
            **fields,
        )
        path = controller.start(
            HostSettings(
                name=operator,
                operators={operator: settings},
                readers={"lines": (operator,), reminders_of(operator): (operator,)},
                leaving=(operator,),
                everyone=((operator, "lines"),) if everyone else (),
                inner=(reminders_of(operator),),
                stateful=(operator,) if stateful else (),
                nulls=(operator,) if nulls else (),
                reminded={operator: reminders_of(operator)},
                ttl_s={} if ttl_s is None else {operator: ttl_s},
                folder=tmp_path / operator,
                cuts=tmp_path / "cuts",
                relay_timeout_s=relay_timeout_s,
            )
        )
        controller.await_running(operator, settings.processors)
        return Query(controller, HostAddress(path=str(path)), route or route_of(operator))

    return start
