"""An objective on Spark, while the driver is killed and looks are lost.

    python benchmarks/spark_objective.py [--minutes 60] [--kept 95] [--out build/objective]

The video pipeline of the examples (operators wait as long as they would work), a load that
steps every two minutes, p95 below 3.5 s in slices of 30 s. After a third of the time the driver
is killed (kill -9) and started again from its state; then the hosts are stopped for 10 s three
times, as if their machine hung. Prints the slices of both runs with the causes of misses, and
the level before and after.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
from rich import box
from rich.console import Console
from rich.table import Table

EXAMPLES = Path(__file__).parent.parent / "examples"
SOJOURN = Path(sys.executable).with_name("sojourn")
LEVELS_PER_S = (6.0, 10.0, 4.0, 13.0, 8.0, 3.0)
STEP_S, STOPPED_S = 120, 10.0
# What a start and a drain may take beside the time that was asked for.
SLACK_S = 180.0


def write_load(path, lasts_s):
    """Write a load that jumps to another level every two minutes."""
    lines = ["timestamp,rate"]
    for number in range(int(lasts_s / STEP_S) + 1):
        per_s = LEVELS_PER_S[number % len(LEVELS_PER_S)]
        lines += [f"{number * STEP_S},{per_s}", f"{(number + 1) * STEP_S - 1},{per_s}"]
    path.write_text("\n".join(lines) + "\n")


def started(folder, kept, lasts_s, *fresh):
    """Start the application for a time; its events go to a file."""
    command = [SOJOURN, "run", EXAMPLES / "vld.yaml", "--trace", folder / "steps.csv"]
    command += ["--target-p95", "3.5s", "--slice", "30s", "--kept", f"{kept:g}%"]
    command += ["--state", folder / "state", "--history", folder / "history"]
    command += ["--for", f"{lasts_s:g}s", "--json", *fresh]
    with (folder / "events.jsonl").open("ab") as events:
        return subprocess.Popen(list(map(str, command)), stdout=events, stderr=events)


def hosts(pid):
    """Return the hosts below a driver."""
    found = []
    for each in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):
            if "sojourn.spark.host" in each.cmdline():
                found.append(each)
    return found


def hang(pid):
    """Stop all hosts for a moment."""
    stopped = hosts(pid)
    for each in stopped:
        each.suspend()
    time.sleep(STOPPED_S)
    for each in stopped:
        with suppress(psutil.Error):
            each.resume()
    return len(stopped)


def runs(folder):
    """Return the slices of each run, and its unusable looks."""
    found, number = [], 1
    while True:
        asked = [SOJOURN, "history", folder / "history", "--run", str(number), "--json"]
        done = subprocess.run(
            list(map(str, asked)), capture_output=True, text=True, check=False
        )
        if done.returncode:
            return found
        report = json.loads(done.stdout)
        slices = [each for turn in report["turns"] for each in turn["slices"]]
        reasons = {turn["reason"] for turn in report["turns"] if not turn["usable"]}
        found.append((slices, report["summary"], reasons))
        number += 1


def show(found):
    heads = (
        "run",
        "slices",
        "kept",
        "missed by the load",
        "excused",
        "level",
        "unusable looks",
    )
    table = Table(*heads, box=box.SIMPLE)
    for number, (slices, summary, _) in enumerate(found, 1):
        missed = [each for each in slices if not each["kept"]]
        excused = [each["cause"] for each in missed if each["cause"]]
        part = f"{1 - len(missed) / len(slices):.1%}" if slices else ""
        levels = f"{slices[0]['level']:+.2f} … {slices[-1]['level']:+.2f}" if slices else ""
        cells = (number, len(slices), part, len(missed) - len(excused), len(excused), levels)
        table.add_row(*map(str, cells), str(summary["unusable"]))
    Console(width=110).print(table)
    for number, (slices, _, reasons) in enumerate(found, 1):
        for each in slices:
            if not each["kept"]:
                late = f"{each['born'] - each['in_time']} of {each['born']} roots late"
                when = f"{each['since_s']:.0f}-{each['until_s']:.0f} s"
                print(f"run {number}, {when}: {late}: {each['cause'] or 'the load'}")
        for reason in sorted(reasons):
            print(f"run {number}, unusable: {reason}")


def main():
    """Run everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--kept", type=float, default=95.0, help="in percent")
    parser.add_argument("--out", type=Path, default=Path("build/objective"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    for old in asked.out.glob("history*"):
        old.unlink()
    lasts_s = 60 * asked.minutes
    write_load(asked.out / "steps.csv", lasts_s + SLACK_S)
    app = started(asked.out, asked.kept, lasts_s, "--fresh")
    try:
        time.sleep(lasts_s / 3)
        print(f"the driver is killed, pid {app.pid}", flush=True)
        os.kill(app.pid, signal.SIGKILL)
        app.wait()
        app = started(asked.out, asked.kept, lasts_s * 2 / 3)
        for _ in range(3):
            time.sleep(lasts_s / 6)
            print(f"hosts stopped for {STOPPED_S:g} s: {hang(app.pid)}", flush=True)
        status = app.wait(timeout=lasts_s / 6 + SLACK_S)
        print(f"the second run ended with status {status}", flush=True)
    finally:
        if app.poll() is None:
            app.send_signal(signal.SIGINT)
            app.wait(timeout=SLACK_S)
    show(runs(asked.out))


if __name__ == "__main__":
    main()
