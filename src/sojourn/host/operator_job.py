"""An operator of an application as the job of a host."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from inspect import isgeneratorfunction
from typing import Any, cast

from sojourn.app.codec import codec_of
from sojourn.app.loading import load
from sojourn.app.operator import PythonOperator
from sojourn.app.output import output_of
from sojourn.errors import BadInput, BadRecord
from sojourn.host.messages import OutputRecord, Record
from sojourn.host.sizes import blobs_bytes

__all__ = ["OperatorJob", "of_application"]


def of_application(argument: str) -> "OperatorJob":
    """Return the job of an operator, named as `package.module:app operator`.

    In place of the module may be the path of a topology file, which may have blanks.
    """
    address, _, name = argument.rpartition(" ")
    if not address:
        raise BadInput(f"{argument!r} has no operator; write package.module:app operator")
    operator = load(address).operators.get(name)
    if not isinstance(operator, PythonOperator):
        raise BadInput(
            f"{address} has no Python operator {name!r}; check the name: native operators run "
            "in Spark"
        )
    return OperatorJob(operator)


class OperatorJob:
    """Calls the function of *operator* with the columns of each record."""

    def __init__(self, operator: PythonOperator) -> None:
        self._operator, self._checked = operator, output_of(operator)
        # native streams have no schema, and no function reads or writes them
        self._read = {s.name: codec_of(s) for s in operator.reads if s.schema}
        self._written = {s.name: codec_of(s) for s in operator.emits if s.schema}
        self._before: tuple[object, ...] = ()
        self._opened = ExitStack()

    def set_up(self) -> None:
        """Call the operator's own set-up; the function then gets first what that returns.

        One that yields it goes on when the processor ends.
        """
        set_up = self._operator.set_up
        if set_up is not None and isgeneratorfunction(set_up):
            self._before = (self._opened.enter_context(contextmanager(set_up)()),)
        elif set_up is not None:
            self._before = (set_up(),)

    def tear_down(self) -> None:
        """Let a set-up that yielded go on."""
        self._opened.close()

    def __call__(self, record: Record, /) -> Iterator[OutputRecord]:
        """Yield what the function does."""
        values = self._read[record.stream].decode(record.payload, record.blobs)
        arguments: tuple[Any, ...] = values
        if self._operator.names_input:
            arguments = (record.stream, values)
        if self._operator.record_id:
            arguments = (record.name or record.identity, *arguments)
        yielded = cast(
            "Iterable[object] | None", self._operator.function(*self._before, *arguments)
        )
        for output in yielded or ():
            stream, values = self._checked(output)
            payload, blobs = self._written[stream].encode(values)
            size = len(payload) + blobs_bytes(blobs)
            if 0 < record.room < size:
                raise BadRecord(
                    f"operators.{self._operator.name}.emits.{stream}",
                    f"a record of {size} bytes is too large: Kafka takes {record.room} beside "
                    "key and headers; send less, or raise max.request.size of the application "
                    "and max.message.bytes of the topic",
                )
            yield OutputRecord(stream, payload, dict(blobs))
