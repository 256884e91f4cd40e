"""`sojourn cluster`: a Spark cluster on this machine, for trials over several nodes."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from sojourn.cli.options import JsonOption
from sojourn.errors import BadInput, EngineError
from sojourn.registry import optional
from sojourn.report.json.output import print_json
from sojourn.report.terminal.progress import working
from sojourn.service.folders import cluster_folder
from sojourn_trial.cli.cluster_table import cluster_json, print_cluster

if TYPE_CHECKING:  # Spark is optional
    from sojourn_trial.cluster.trial_state import TrialState


def cluster(
    action: Annotated[str, Argument(metavar="start|stop|status", help="What to do.")],
    *,
    nodes: Annotated[int, Option(min=1, max=99, help="start: number of workers.")] = 3,
    cores: Annotated[int, Option(min=1, max=1024, help="start: cores of each worker.")] = 4,
    memory_mb: Annotated[
        int, Option(min=512, metavar="MB", help="start: memory of each worker for executors.")
    ] = 1024,
    plain: Annotated[
        bool, Option("--plain", help="start: processes on 127.0.0.1, no network namespaces.")
    ] = False,
    rate: Annotated[
        str, Option(metavar="RATE", help="start: rate of each worker's network: 100mbit.")
    ] = "",
    delay_ms: Annotated[
        float,
        Option(
            min=0, max=10_000, metavar="MS", help="start: delay between machines, each way."
        ),
    ] = 0.0,
    folder: Annotated[
        Path | None,
        Option(metavar="DIR", help="Folder of the cluster (default: one in the user's state)."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Start, stop or show a Spark cluster on this machine, for trials over several nodes.

    It runs in the background until it is stopped. Where the system allows it (Linux, root),
    each worker is in a network namespace of its own, as on another machine.

    Examples: sojourn cluster start --nodes 3 · sojourn cluster status · sojourn cluster stop
    """
    where = (folder or cluster_folder()).absolute()
    stop = f"sojourn cluster stop{'' if folder is None else f' --folder {where}'}"
    if action == "stop":
        ended = _stop(where)
        if json:
            print_json({"folder": str(where), "stopped": ended})
        else:
            typer.echo("stopped" if ended else f"no cluster in {where}: nothing to stop")
        return
    if action == "start":
        with optional("the cluster needs", "spark"):
            from sojourn_trial.cluster.trial_cluster import TrialCluster  # noqa: PLC0415
            from sojourn_trial.cluster.trial_network import Wire  # noqa: PLC0415
        running = TrialCluster(
            nodes,
            cores=cores,
            memory_mb=memory_mb,
            folder=where,
            plain=plain,
            wire=Wire(rate=rate, delay_s=delay_ms / 1000),
            detached=True,
        )
        for end in (signal.SIGTERM, signal.SIGHUP):  # as with Ctrl-C, nothing is left
            signal.signal(end, signal.default_int_handler)
        with working(f"starting {nodes} workers"):
            running.start()
    elif action != "status":
        raise BadInput(f"{action!r} is not an action; write start, stop or status")
    state = _read(where)
    if json:
        print_json({**cluster_json(state), "folder": str(where), "stop": stop})
    else:
        print_cluster(state)
        typer.echo(f"logs: {where}")
        typer.echo(f"stop: {stop}")


def _stop(where: Path) -> bool:
    with optional("the cluster needs", "spark"):
        from sojourn_trial.cluster.trial_folder import end_cluster  # noqa: PLC0415 - optional
    with working("stopping the cluster"):
        return end_cluster(where)


def _read(where: Path) -> "TrialState":
    with optional("the cluster needs", "spark"):
        from sojourn_trial.cluster.trial_state import TrialState  # noqa: PLC0415 - optional
    state = TrialState.read(where)
    if state is None:
        raise EngineError(f"no cluster in {where}; `sojourn cluster start` starts one")
    return state
