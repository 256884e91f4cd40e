"""The status of a trial cluster as text and as JSON."""

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:  # Spark is optional
    from sojourn_trial.cluster.trial_state import TrialState


def print_cluster(state: "TrialState") -> None:
    """Print the URL, the workers, and the command to run an application there."""
    typer.echo(f"master: {state.master}{'' if _master_runs(state) else ', has ended'}")
    typer.echo(f"web page: {state.page}")
    if state.network is None:
        typer.echo(f"network: plain processes on {state.driver_address}: {state.why_plain}")
    else:
        address = state.driver_address
        typer.echo(f"network: a namespace for each worker; this machine is {address}")
    for worker in state.workers:
        ended = "" if worker.process.runs else ", has ended"
        typer.echo(
            f"worker {worker.number}: {worker.address}, {state.cores} cores, "
            f"{state.memory_mb} MB, pid {worker.pid}{ended}"
        )
    typer.echo(f"run: {_run(state)}")


def cluster_json(state: "TrialState") -> dict[str, Any]:
    """Return the status of the cluster as JSON."""
    return {
        "master": state.master,
        "runs": _master_runs(state),
        "page": state.page,
        "driver_address": state.driver_address,
        "network": "plain" if state.network is None else "namespaces",
        "why_plain": state.why_plain or None,
        "cores": state.cores,
        "memory_mb": state.memory_mb,
        "workers": [
            {
                "number": worker.number,
                "pid": worker.pid,
                "address": worker.address,
                "namespace": worker.namespace or None,
                "runs": worker.process.runs,
            }
            for worker in state.workers
        ],
        "run": _run(state),
    }


def _master_runs(state: "TrialState") -> bool:
    return state.master_process is not None and state.master_process.runs


def _run(state: "TrialState") -> str:
    return (
        f"sojourn run package.module:app --target-p95 1s --master {state.master} "
        f"--conf spark.driver.host={state.driver_address} "
        f"--conf spark.executor.cores={state.cores} "
        f"--conf spark.executor.memory={state.memory_mb}m"
    )
