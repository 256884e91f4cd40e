"""A host that listens for other machines, and agents of nodes, without Spark."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

from host.relaying import Query, route_of
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.wire.host_address import HostAddress
from sojourn.spark.wire.host_settings import HostSettings, OperatorSettings

DEADLINE_S = 60
HERE = "127.0.0.1"


class Cluster:
    """A host that listens, and agents of nodes."""

    def __init__(self, folder, identity=None, machine=HERE):
        self.folder, self.agents, self.machine = folder, [], machine
        self.controller = Controller(
            folder / "all", tasks=lambda _stage: 1, binds=machine, identity=identity
        )

    def start(self, operator="where", *, relay_timeout_s=10.0, **fields):
        settings = OperatorSettings(
            job="sojourn.spark.processor.operator_job:of_application",
            argument=f"unit.spark.host.application:app {operator}",
            **fields,
        )
        self.controller.launch(
            HostSettings(
                name="part",
                operators={operator: settings},
                readers={"lines": (operator,)},
                leaving=(operator,),
                folder=self.folder / "host",
                cuts=self.folder / "cuts",
                relay_timeout_s=relay_timeout_s,
            )
        )
        self.operator = operator
        return Query(self.controller, self.address(), route_of(operator))

    def address(self, *, port=None):
        return HostAddress(
            machine=self.machine,
            port=port or self.controller.launcher.port("part"),
            secret=self.controller.launcher.secret,
            certificate=self.controller.launcher.certificate,
        )

    def agent(self, node, *, watch=0, port=None, ahead_s=0.0, inside=(), kafka=()):
        """Start the agent of a node, as a task of Spark does; by a command, *inside* of it.

        The clock of all Python there is ahead by so much.
        """
        told = {
            "executor": node.removeprefix("executor-"),
            "hosts": {"part": [self.machine, port or self.controller.launcher.port("part")]},
            "secret": self.controller.launcher.secret.hex(),
            "certificate": self.controller.launcher.certificate,
            "watch": watch,
            "logs": str(self.folder / node),
            "kafka": {"addresses": kafka},
        }
        path = ["tests", *sys.path]
        if ahead_s:
            path.insert(0, _clock_ahead(self.folder / f"{node}-clock", ahead_s))
        agent = subprocess.Popen(
            [*inside, sys.executable, "-m", "sojourn.spark.agent"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        )
        self.agents.append(agent)
        agent.stdin.write(json.dumps(told).encode())
        agent.stdin.close()
        with agent.stdout:
            assert agent.stdout.readline() == b"ready\n"
        return agent

    def until(self, found):
        until_s = time.monotonic() + DEADLINE_S
        while not found():
            assert time.monotonic() < until_s
            time.sleep(0.02)

    def runs(self, **on):
        named = {name.replace("_", "-"): number for name, number in on.items()}
        self.until(lambda: self.controller.placed(self.operator) == named)


@contextmanager
def cluster_in(folder, identity=None, machine=HERE):
    """Give a cluster that ends with the block, whose host listens at *machine*."""
    made = Cluster(folder, identity, machine)
    with made.controller:
        try:
            yield made
        finally:
            for agent in made.agents:
                end(agent)


def end(agent):
    """End an agent, also one that is suspended; one that hangs is killed."""
    agent.send_signal(signal.SIGCONT)
    agent.terminate()
    try:
        agent.wait(DEADLINE_S)
    finally:
        agent.kill()
        agent.wait()


def _clock_ahead(folder, ahead_s):
    """Return a folder that sets the clock of all Python that has it in its path."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        f"import time\ntrue = time.time\ntime.time = lambda: true() + {ahead_s!r}\n"
    )
    return str(folder)


def lines_of(number, line="word"):
    return [json.dumps({"line": f"{line}-{n}"}).encode() for n in range(number)]


def words_of(rows):
    return sorted(json.loads(row["value"])["word"] for row in rows)


def pids_of(rows):
    return {json.loads(row["value"])["pid"] for row in rows}
