"""An application run in memory: no Kafka, no Spark, and the results of each record."""

from collections import Counter

from sojourn.testing import AppHarness


class InMemory:
    """Sends records to *app* one after the other; a context manager if it has a set-up."""

    def __init__(self, app):
        self._app, self._harness = app, AppHarness(app)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._harness.__exit__(*exception)

    @property
    def dead_letters(self):
        """The operators that failed, with their records."""
        return [(letter.operator, letter.record) for letter in self._harness.dead_letters]

    def states(self, operator):
        """Return the states of an operator by key."""
        return self._harness.states(operator)

    def results(self, source, record):
        """Return how often each sink and record results from a record of *source*."""
        known = {sink: len(made) for sink, made in self._harness.results.items()}
        self._harness.send(source, record)
        return Counter(
            (sink, _hashable(each))
            for sink, made in self._harness.results.items()
            for each in made[known[sink] :]
        )


def _hashable(value):
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def expected(answers, source, record):
    """Return the same, as worked out offline."""
    return Counter((sink, _hashable(made)) for sink, made in answers(source, record))
