"""Keeps an agent running on every executor, for as long as the executor is registered."""

import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from sojourn.errors import EngineError
from sojourn.spark.driver.nodes.agent_start import Start
from sojourn.spark.driver.nodes.executors import Executor

_LOOK_S = 0.5
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
# Starts in parallel: each holds a thread here and a slot there for about a second.
_AT_ONCE = 8


@dataclass(slots=True)
class _Post:
    """The status of an executor's agent: starting, ready, or waiting for a retry."""

    executor: Executor
    starting: "Future[None] | None" = None
    ready: bool = False
    failures: int = 0
    """Failed starts since it was last ready."""
    problem: str = ""
    """Why the last start failed."""
    again_s: float = 0.0
    """The time of the next retry."""


class Agents:
    """Starts one agent on each executor that *look* returns.

    A context manager with a thread of its own. An agent that is ready is not started again
    unless `lost` reports its end. On exit, starts under way give up and are waited for. Agents
    end with their executors.
    """

    def __init__(
        self,
        look: Callable[[], Sequence[Executor]],
        start: Start,
        *,
        look_s: float = _LOOK_S,
        first_pause_s: float = _FIRST_PAUSE_S,
    ) -> None:
        self._look, self._start = look, start
        self._look_s, self._first_pause_s = look_s, first_pause_s
        self._posts: dict[str, _Post] = {}
        self._lost: set[str] = set()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="agent")
        self._thread = threading.Thread(target=self._run, name="agents", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._pool.shutdown(wait=True, cancel_futures=True)

    @property
    def ready(self) -> tuple[Executor, ...]:
        with self._lock:
            return tuple(post.executor for post in self._posts.values() if post.ready)

    @property
    def registered(self) -> tuple[Executor, ...]:
        """The executors that were registered at the last look."""
        with self._lock:
            return tuple(post.executor for post in self._posts.values())

    @property
    def problems(self) -> dict[str, str]:
        """Why agents did not start, by executor; their start is retried."""
        with self._lock:
            return {name: post.problem for name, post in self._posts.items() if post.problem}

    def lost(self, executor_id: str) -> None:
        """Restart the agent of an executor, which has ended before its executor."""
        with self._lock:
            self._lost.add(executor_id)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                found = {each.id: each for each in self._look()}
            except Exception:  # noqa: BLE001 - the gateway fails while Java ends
                self._stopping.wait(self._look_s)
                continue
            self._forget(found.keys())
            for executor in found.values():
                self._attend(executor)
            self._stopping.wait(self._look_s)

    def _forget(self, found: Collection[str]) -> None:
        with self._lock:
            for name in self._posts.keys() - found:
                # a start under way notices by itself that its executor is gone
                del self._posts[name]
                self._lost.discard(name)

    def _attend(self, executor: Executor) -> None:
        with self._lock:
            post = self._posts.setdefault(executor.id, _Post(executor))
            post.executor = executor  # with its current number of tasks
            if executor.id in self._lost:
                self._lost.discard(executor.id)
                post.ready = False
        if post.ready:
            return
        if post.starting is None:
            if time.monotonic() >= post.again_s:
                post.starting = self._pool.submit(self._start, executor, self._stopping)
        elif post.starting.done():
            self._settle(post, post.starting)

    def _settle(self, post: _Post, started: "Future[None]") -> None:
        """Take in the result of a start."""
        post.starting, error = None, started.exception()
        if error is None:
            with self._lock:
                post.ready, post.failures, post.problem = True, 0, ""
            return
        post.failures += 1
        post.again_s = time.monotonic() + _pause_s(post.failures, self._first_pause_s)
        post.problem = str(error) if isinstance(error, EngineError) else repr(error)


def _pause_s(failures: int, first_s: float = _FIRST_PAUSE_S) -> float:
    """Return the delay before the start of an agent is retried after *failures*.

    >>> [_pause_s(failures) for failures in (1, 2, 3, 20)]
    [0.5, 1.0, 2.0, 30.0]
    """
    return min(_LONGEST_PAUSE_S, first_s * 2.0 ** min(failures - 1, 30))
