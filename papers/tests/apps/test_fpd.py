import json
from collections import Counter
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.app.output import output_of
from sojourn.errors import BadInput
from sojourn.spark.processor.state_codec import StateCodec
from sojourn_papers.apps.catalogue import entry
from sojourn_papers.apps.fpd import app, detect, generate, offline, report
from sojourn_papers.apps.fpd.items import candidates, immediate_subsets, items_of
from sojourn_papers.apps.fpd.samples import NOTHING
from sojourn_papers.apps.fpd.settings import Settings

WORDS = ("alpha", "beta", "gamma", "delta", "epsilon")
TWEETS = st.lists(st.sets(st.sampled_from(WORDS), max_size=4).map(sorted), max_size=12)
SETTINGS = st.builds(
    Settings,
    items=st.integers(1, 4),
    largest=st.integers(1, 4),
    threshold=st.integers(1, 4),
)


def tweet(*words):
    return (json.dumps({"id": 1, "text": " ".join(words)}),)


class Shuffled:
    """Runs the functions; *draw* picks which of the open records is next, whatever its key."""

    def __init__(self, settings, draw):
        self._settings, self._draw = settings, draw
        self._states = {"detect": {}, "report": {}}
        self._codecs = {o.name: StateCodec(o.name, o.state) for o in (detect, report)}
        self._checked = {o.name: output_of(o) for o in (generate, detect, report)}
        self.sent, self.results = Counter(), []

    def run(self, records):
        """Let *records*, pairs of source and record, pass in any order."""
        waiting = list(records)
        while waiting:
            stream, record = waiting.pop(self._draw(len(waiting)))
            waiting += self._served(stream, record)

    def _served(self, stream, record):
        self.sent[stream] += 1
        if stream in app.sources:
            return self._yielded(generate, self._settings, stream, record)
        operator = report if stream == "changes" else detect
        key, codec = record[0], self._codecs[operator.name]
        state = codec.decode(self._states[operator.name].pop(key, b""))
        if operator is detect:
            made = self._yielded(detect, self._settings, state, stream, record)
        else:
            self.results += [row for _, row in self._yielded(report, state, *record)]
            made = []
        if kept := codec.encode(state):
            self._states[operator.name][key] = kept
        return made

    def _yielded(self, operator, *arguments):
        return [self._checked[operator.name](made) for made in operator(*arguments)]

    def states(self, operator):
        """Return what is kept in the end, by key."""
        codec = self._codecs[operator]
        return {(key,): codec.decode(kept) for key, kept in self._states[operator].items()}


def maximal_by_definition(tweets, settings):
    """Return the frequent sets that no other frequent set contains: compared one by one."""
    groups = [frozenset(sorted(words)) for words in tweets]
    universe = [frozenset(s.split()) for s in candidates(sorted(WORDS), settings.largest)]
    frequent = {
        some for some in universe if sum(some <= g for g in groups) >= settings.threshold
    }
    return {
        (" ".join(sorted(some)),)
        for some in frequent
        if not any(some < other for other in frequent)
    }


@pytest.fixture
def set_to(monkeypatch):
    """Return a function that sets the variables of settings."""

    def to(settings):
        for name in ("window", "items", "largest", "threshold"):
            monkeypatch.setenv(f"SOJOURN_FPD_{name.upper()}", str(getattr(settings, name)))
        return settings

    return to


@given(entered=TWEETS, left=st.data(), settings=SETTINGS, order=st.randoms())
def test_in_whatever_order_records_come_the_end_is_that_worked_out_offline(
    entered, left, settings, order
):
    """Tweets leave before they enter, sets are told of supersets that were never frequent."""
    gone = left.draw(st.lists(st.booleans(), min_size=len(entered), max_size=len(entered)))
    records = [("entering", tweet(*words)) for words in entered]
    records += [
        ("leaving", tweet(*words)) for words, out in zip(entered, gone, strict=True) if out
    ]
    run = Shuffled(settings, order.randrange)
    run.run(records)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("items", "largest", "threshold"):
            patch.setenv(f"SOJOURN_FPD_{name.upper()}", str(getattr(settings, name)))
        assert run.states("detect") == offline.states(records)["detect"]
        due = offline.rows(records)
    assert offline.told({"report": run.results}) == due
    reported = run.states("report")
    assert {state["maximal"] for state in reported.values()} <= {0, 1}
    assert {key for key, state in reported.items() if state["maximal"]} == due["maximal"]
    stay = [
        items_of(" ".join(words), settings.items)
        for words, out in zip(entered, gone, strict=True)
        if not out
    ]
    assert due["maximal"] == maximal_by_definition(stay, settings)


@given(tweets=TWEETS, settings=SETTINGS, order=st.randoms())
def test_nothing_is_kept_of_what_has_left(tweets, settings, order):
    """Only the numbers of changes stay."""
    records = [
        (source, tweet(*words)) for source in ("entering", "leaving") for words in tweets
    ]
    run = Shuffled(settings, order.randrange)
    run.run(records)
    assert run.states("detect") == {}
    assert not any(state["maximal"] for state in run.states("report").values())


def test_a_set_is_maximal_until_a_larger_one_is_frequent():
    run = Shuffled(Settings(threshold=2), lambda _: 0)
    run.run([("entering", tweet("home", "stay"))])
    assert run.results == []
    run.run([("entering", tweet("home"))])
    assert run.results == [("home", True, 1)]
    run.run([("entering", tweet("home", "stay"))])
    assert offline.told({"report": run.results}) == {"maximal": {("home stay",)}}
    run.run([("leaving", tweet("home", "stay"))])
    assert offline.told({"report": run.results}) == {"maximal": {("home",)}}


def same_as_offline(settings, number):
    sources = ("entering", "leaving")
    samples = {source: list(islice(app.samples[source](3), number)) for source in sources}
    run = Shuffled(settings, lambda _: 0)
    for pair in zip(*samples.values(), strict=True):
        run.run(zip(sources, pair, strict=True))
    records = [(source, record) for source in sources for record in samples[source]]
    due = offline.rows(iter(records))
    assert offline.told({"report": run.results}) == due
    assert run.states("detect") == offline.states(records)["detect"]
    assert samples["leaving"][: settings.window] == [(NOTHING,)] * settings.window
    assert samples["leaving"][settings.window :] == samples["entering"][: -settings.window]
    assert max(len(item_set.split()) for (item_set,) in due["maximal"]) > 1
    assert run.sent["notices"] > 0
    return run.sent


@pytest.mark.usefixtures("no_data")
def test_a_sliding_window_of_made_up_tweets(set_to):
    same_as_offline(set_to(Settings(window=100)), 300)


@pytest.mark.usefixtures("real_data")
def test_a_sliding_window_of_real_tweets(set_to):
    """The hints of the application are what is measured on them."""
    sent = same_as_offline(set_to(Settings()), 2000)
    tweets = sent["entering"] + sent["leaving"]
    detected = sent["candidates"] + sent["notices"]
    assert sent["candidates"] / tweets == pytest.approx(22, rel=0.1)
    assert sent["notices"] / detected == pytest.approx(0.013, rel=0.5)
    assert sent["changes"] / detected == pytest.approx(0.023, rel=0.5)


@given(st.text(st.sampled_from("abcdeE1 '_-.@#:/\xe9\u6f22\u0130\n")) | st.text())
def test_operator_and_offline_find_the_same_items(text):
    """They are written independently: one searches for words, one for what is between."""
    records = [("entering", (json.dumps({"text": text}),))]
    found = generate(Settings(), *records[0])
    due = offline.states(records)["detect"]
    assert {(item_set,) for _, (item_set, _) in found} == set(due)


def test_a_link_reaches_to_the_next_space():
    assert items_of("see https://x.org/a,today more@here http:// news", 9) == ["http", "news"]


def test_subsets_of_a_candidate_are_candidates():
    found = set(candidates(sorted(WORDS), 3))
    assert len(found) == 5 + 10 + 10
    assert {subset for some in found for subset in immediate_subsets(some)} < found


def test_bad_tweets_fail():
    """They are dead letters: the operator says so."""
    assert generate.on_error.then == "dead_letter"
    for bad in ("{", "[]", '{"text": 5}'):
        with pytest.raises((ValueError, AttributeError)):
            list(generate(Settings(), "entering", (bad,)))


def test_settings_are_numbers_from_1_on(monkeypatch):
    monkeypatch.setenv("SOJOURN_FPD_WINDOW", "0")
    with pytest.raises(BadInput, match="SOJOURN_FPD_WINDOW=0 is not a number from 1 on"):
        Settings.of_environment()


def test_the_traffic_equations_have_the_loop():
    assert entry("fpd").app is app
    rates = app.topology({"entering": 20, "leaving": 20}).rates
    assert rates["generate"] == pytest.approx(40)
    assert rates["detect"] == pytest.approx(40 * 22 / (1 - 0.013))
    assert rates["report"] == pytest.approx(0.023 * rates["detect"])
