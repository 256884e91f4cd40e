import json
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from itertools import islice

import pytest

from apps.in_memory import InMemory, expected
from sojourn.errors import BadInput, EngineError
from sojourn_papers.apps.urls import app, find
from sojourn_papers.apps.urls.links import known_links, target
from sojourn_papers.apps.urls.offline import answers
from sojourn_papers.apps.urls.resolver import Resolver
from sojourn_papers.apps.urls.service import HOST, LINGER_S, Service, main
from sojourn_papers.apps.urls.settings import Settings

PROCESSOR = """
import time
from sojourn_papers.apps.urls.resolver import Resolver
from sojourn_papers.apps.urls.settings import Settings
resolver = Resolver(Settings.of_environment())
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def port(monkeypatch):
    """Give the test a port of its own, and a service that answers at once."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("SOJOURN_URLS_PORT", str(port))
    monkeypatch.setenv("SOJOURN_URLS_LATENCY_S", "0")
    return port


@pytest.fixture
def served(port):
    """Run the service in this process, and return its settings."""
    settings = Settings(port=port, latency_s=0)
    with Service(settings) as service:
        thread = threading.Thread(target=service.serve, args=(0.3,))
        thread.start()
        yield settings
        thread.join()


@pytest.fixture
def resolver(served):
    resolver = Resolver(served)
    yield resolver
    resolver.close()


def answers_at(port):
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except ConnectionRefusedError:
        return False


def processor():
    child = subprocess.Popen([sys.executable, "-c", PROCESSOR], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    return child


def kill(child):
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()


# -- operators ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("see http://t.co/IIx1UGnE", ["http://t.co/IIx1UGnE"]),
        ("https://bit.ly/a1, (http://t.co/b)", ["https://bit.ly/a1", "http://t.co/b"]),
        ("cut off: http://t.co/IIx1… and http://t.co/ and http://t.co", []),
        ("long: https://example.org/t.co/a", []),
    ],
)
def test_short_links_are_found(text, links):
    assert [short for _, short in find(1, text)] == links
    record = (json.dumps({"id": 1, "text": text}),)
    assert [result[1] for _, result in answers("tweets", record)] == links


def same_as_offline(number):
    with InMemory(app) as run:
        for record in islice(app.samples["tweets"](2), number):
            assert run.results("tweets", record) == expected(answers, "tweets", record)


@pytest.mark.usefixtures("no_data", "served")
def test_results_of_made_up_tweets_are_those_worked_out_offline():
    same_as_offline(500)


@pytest.mark.usefixtures("real_data", "served")
def test_results_of_real_tweets_are_those_worked_out_offline():
    same_as_offline(500)


# -- where links lead --------------------------------------------------------------------------


@pytest.mark.usefixtures("real_data")
def test_known_links_are_those_that_were_clicked():
    known = known_links()
    assert known["http://1.usa.gov/wfLQtf"] == "http://www.ncbi.nlm.nih.gov/pubmed/22415991"
    assert all(long.isascii() and " " not in long for long in known.values())


@pytest.mark.usefixtures("no_data")
def test_the_part_of_dead_links_is_the_one_set():
    known = known_links()
    found = [target(f"http://t.co/{n}", known, 0.1) for n in range(5000)]
    assert found.count(None) / len(found) == pytest.approx(0.1, abs=0.02)
    assert sum(to in known for to in found) / len(found) == pytest.approx(0.225, abs=0.03)


# -- the service and its cache -----------------------------------------------------------------


def test_answers_are_redirects(served):
    service = HTTPConnection(HOST, served.port)
    service.request("GET", "/t.co/abc")
    answer = service.getresponse()
    assert (answer.status, answer.read()) == (301, b"")
    assert answer.headers["Location"] == target("http://t.co/abc", known_links(), served.dead)
    service.close()


def test_what_was_asked_is_remembered(resolver):
    assert resolver.resolve("http://t.co/abc") == resolver.resolve("http://t.co/abc")
    assert resolver.resolve.cache_info().hits == 1


def test_dead_links_and_endless_ones_are_failures(resolver, monkeypatch):
    dead = (f"http://t.co/{n}" for n in range(1000))
    dead = next(link for link in dead if target(link, known_links(), 0.02) is None)
    assert resolver.resolve(dead) == (None, "404 Not Found")
    monkeypatch.setattr("sojourn_papers.apps.urls.service.target", lambda short, *_: short)
    assert resolver.resolve("http://t.co/round") == (None, "more than 5 redirects")


def test_a_service_with_other_settings_is_not_used(served):
    with pytest.raises(EngineError, match="SOJOURN_URLS_PORT"):
        Resolver(Settings(port=served.port, latency_s=0, dead=0.5))


def test_a_setting_that_is_no_number_is_refused(monkeypatch):
    monkeypatch.setenv("SOJOURN_URLS_DEAD", "few")
    with pytest.raises(BadInput, match="SOJOURN_URLS_DEAD=few"):
        Settings.of_environment()


def test_only_one_has_the_port(served, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["service", "--detach"])
    main()  # another one serves
    monkeypatch.setattr(sys, "argv", ["service", "--port", str(served.port)])
    with pytest.raises(OSError, match="in use"):
        main()


# -- its life ----------------------------------------------------------------------------------


def test_it_outlives_who_started_it_but_not_the_last_one(port):
    """Processors come and are killed; the service is neither missed nor left behind."""
    starter = processor()
    other = Resolver(Settings.of_environment())
    kill(starter)
    time.sleep(LINGER_S + 0.5)
    assert other.resolve("http://t.co/abc")
    other.close()
    gone_s = time.monotonic() + LINGER_S + 5
    while answers_at(port):
        assert time.monotonic() < gone_s
        time.sleep(LINGER_S + 0.5)  # to look is to connect


def test_it_ends_with_a_processor_that_is_killed(port):
    kill(processor())
    time.sleep(LINGER_S + 1)
    assert not answers_at(port)


@pytest.mark.usefixtures("port")
def test_processors_that_start_together_share_one():
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(Resolver, [Settings.of_environment()] * 4))
    try:
        assert len({each.resolve("http://t.co/abc") for each in found}) == 1
    finally:
        for each in found:
            each.close()


def test_a_service_that_is_gone_is_started_anew(port):
    resolver = Resolver(Settings.of_environment())
    resolver.close()
    time.sleep(LINGER_S + 1)
    assert not answers_at(port)
    assert resolver.resolve("http://t.co/b")
    resolver.close()
