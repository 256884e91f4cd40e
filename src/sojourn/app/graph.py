"""The graph of operators and streams, and its checks."""

from collections.abc import Iterable, Mapping

from sojourn.app.operator import AppOperator
from sojourn.app.streams import Streams
from sojourn.errors import BadApplication


def check_graph(streams: Streams, operators: Mapping[str, AppOperator]) -> None:
    sources = streams.sources
    if not sources:
        way_out = 'add one: app.source("lines", schema="line string")'
        raise BadApplication("sources", "there is no source", way_out)
    for source in sources:
        if not readers(source, operators):
            way_out = "let an operator read it, or remove it"
            raise BadApplication(f"sources.{source}", "no operator reads it", way_out)
    written = {stream.name for operator in operators.values() for stream in operator.emits}
    for name in streams.named:
        if name not in written and name not in sources:
            way_out = "name it in the emits= of an operator, or remove it"
            raise BadApplication(f"streams.{name}", "no operator writes it", way_out)
    reached = _reached(sources, operators)
    for name in operators:
        if name not in reached:
            way_out = "let it read a stream that is fed by a source"
            raise BadApplication(f"operators.{name}", "no record ever reaches it", way_out)


def readers(stream: str, operators: Mapping[str, AppOperator]) -> list[str]:
    return [
        name
        for name, operator in operators.items()
        if any(read.name == stream for read in operator.reads)
    ]


def writers(stream: str, operators: Mapping[str, AppOperator]) -> list[str]:
    return [
        name
        for name, operator in operators.items()
        if any(written.name == stream for written in operator.emits)
    ]


def _reached(sources: Iterable[str], operators: Mapping[str, AppOperator]) -> set[str]:
    reached: set[str] = set()
    waiting = list(sources)
    while waiting:
        for reader in readers(waiting.pop(), operators):
            if reader not in reached:
                reached.add(reader)
                waiting += [stream.name for stream in operators[reader].emits]
    return reached
