"""Whether clients of a node reach brokers: real sockets, and look-ups that hang."""

import asyncio
import socket
import threading

import pytest

from sojourn.spark.agent.kafka_reach import KafkaBrokers, KafkaChecks, kafka_problem


@pytest.fixture
def broker():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def released():
    """Return what calls wait for until the test is over."""
    over = threading.Event()
    yield over
    over.set()


def test_a_broker_that_accepts_connections_is_no_problem(broker):
    assert kafka_problem(KafkaBrokers((broker,), names=True)) == ""
    assert kafka_problem(KafkaBrokers(())) == ""


def test_an_address_without_a_name_is_no_problem(broker):
    def unknown(_address):
        raise socket.herror(1, "Unknown host")

    assert kafka_problem(KafkaBrokers((broker,), names=True), name_of=unknown) == ""


def test_one_of_several_that_cannot_be_reached_is_told_with_its_address(broker):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        refused = f"127.0.0.1:{closed.getsockname()[1]}"
    problem = kafka_problem(KafkaBrokers((broker, refused)))
    assert problem == f"no connection to Kafka at {refused}: Connection refused"


def test_a_name_that_nobody_knows_is_told():
    problem = kafka_problem(KafkaBrokers(("broker.invalid:9092",)))
    assert problem.startswith("the name broker.invalid of a Kafka broker cannot be resolved: ")


def test_a_look_up_that_hangs_is_told_and_how_to_correct_it(broker, released):
    problem = kafka_problem(
        KafkaBrokers((broker,), names=True),
        patience_s=0.05,
        name_of=lambda _address: released.wait(),
    )
    assert problem.startswith("looking up the name of 127.0.0.1 takes more than 0.05 s")
    assert "/etc/resolv.conf" in problem


def test_names_are_only_looked_up_where_clients_do(broker, released):
    problem = kafka_problem(
        KafkaBrokers((broker,)), patience_s=60.0, name_of=lambda _address: released.wait()
    )
    assert problem == ""


def test_a_slow_look_up_is_told(broker):
    problem = kafka_problem(KafkaBrokers((broker,), names=True), slow_s=-1.0)
    assert "takes more than -1 s" in problem


def test_a_connection_that_is_never_answered_is_told(released, monkeypatch):
    monkeypatch.setattr(
        socket.socket, "connect", lambda _self, _place: released.wait(60) and None
    )
    problem = kafka_problem(KafkaBrokers(("127.0.0.1:9",)), patience_s=0.05)
    assert problem == "no connection to Kafka at 127.0.0.1:9 within 0.05 s"


def test_it_is_checked_again_while_there_is_a_problem_and_when_asked(broker):
    checks = KafkaChecks(KafkaBrokers(("127.0.0.1:1",)), again_s=0.01)

    async def told(problem):
        async with asyncio.timeout(60):
            while bool(checks.problem) is not problem:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)

    async def main():
        running = asyncio.create_task(checks.run())
        await told(problem=True)
        checks._brokers = KafkaBrokers((broker,))  # noqa: SLF001 - as if it had come back
        await told(problem=False)
        checks._brokers = KafkaBrokers(("127.0.0.1:1",))  # noqa: SLF001
        checks.asked.set()
        await told(problem=True)
        running.cancel()

    asyncio.run(main())
