"""An application run in memory: no Kafka, no Spark, one record after the other."""

from collections import Counter, deque
from contextlib import ExitStack, contextmanager
from inspect import isgeneratorfunction

from sojourn.app.codec import codec_of
from sojourn.app.operator import PythonOperator
from sojourn.app.output import output_of
from sojourn.spark.processor.state_codec import StateCodec


class InMemory:
    """Sends records through the functions of *app*; native operators get none.

    Every record is encoded and decoded as on its way through Kafka. What an operator raises
    ends the test, unless it writes dead letters: then the record is in *dead_letters*.
    """

    def __init__(self, app):
        self.app, self.dead_letters = app, []
        self._operators = [o for o in app.operators.values() if isinstance(o, PythonOperator)]
        self._opened = ExitStack()
        self.set_up = {o.name: self._set_up(o.set_up) for o in self._operators if o.set_up}
        self._checked = {o.name: output_of(o) for o in self._operators}
        self._codecs = {o.name: StateCodec(o.name, o.state) for o in self._operators if o.state}
        self.states = {name: {} for name in self._codecs}
        self._sent = 0

    def results(self, source, record):
        """Return how often each sink and record results from a record of *source*."""
        self._sent += 1
        found, queue = Counter(), deque([(source, record, f"{source}/0/{self._sent}")])
        while queue:
            stream, record, identity = queue.popleft()
            record = self._through_kafka(stream, record)
            sinks = (s.name for s in self.app.sinks.values() if s.stream.name == stream)
            found.update((name, _hashable(record)) for name in sinks)
            for operator in self._operators:
                if stream in (read.name for read in operator.reads):
                    yielded = self._yielded(operator, stream, record, identity)
                    queue.extend(
                        (to, made, f"{identity}.{operator.name}.{place}")
                        for place, (to, made) in enumerate(yielded)
                    )
        return found

    def _through_kafka(self, stream, record):
        codec = codec_of(self.app.streams[stream])
        return codec.decode(*codec.encode(record))

    def _set_up(self, set_up):
        if isgeneratorfunction(set_up):
            return self._opened.enter_context(contextmanager(set_up)())
        return set_up()

    def _yielded(self, operator, stream, record, identity):
        arguments = (stream, record) if operator.names_input else record
        if operator.record_id:
            arguments = (identity, *arguments)
        before = (self.set_up[operator.name],) if operator.set_up else ()
        try:
            with self._state(operator, stream, record) as state:
                made = operator(*before, *state, *arguments) or ()
                return list(map(self._checked[operator.name], made))
        except Exception:
            if operator.on_error.then != "dead_letter":
                raise
            self.dead_letters.append((operator.name, record))
            return []

    @contextmanager
    def _state(self, operator, stream, record):
        """Lend the state of the record's key, if there are states; keep it if nothing fails."""
        if operator.name not in self.states:
            yield ()
            return
        (read,) = (read for read in operator.reads if read.name == stream)
        columns = [field.name for field in read.schema.fields]
        key = tuple(record[columns.index(column)] for column in read.key)
        codec, states = self._codecs[operator.name], self.states[operator.name]
        state = codec.decode(states.get(key, b""))
        yield (state,)
        states.pop(key, None)
        if kept := codec.encode(state):
            states[key] = kept


def _hashable(value):
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def expected(answers, source, record):
    """Return the same, as worked out offline."""
    return Counter((sink, _hashable(made)) for sink, made in answers(source, record))
