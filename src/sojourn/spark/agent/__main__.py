"""`python -m sojourn.spark.agent`: the agent of a node, with its settings as JSON on stdin.

It writes one line to stdout, `ready` or `failed: ` and the reason.
"""

import asyncio
import os
import sys

import msgspec

from sojourn.spark.agent.agent import Agent, AgentSettings


def main() -> None:
    """Run an agent until its hosts, or the process that it watches, have ended."""
    try:
        settings = msgspec.json.decode(sys.stdin.buffer.read(), type=AgentSettings)
    except msgspec.MsgspecError as error:
        print(f"failed: its settings: {error}", flush=True)  # noqa: T201 - the task reads it
        return
    print("ready", flush=True)  # noqa: T201 - the task reads it
    os.dup2(2, 1)  # the task has closed its end of stdout
    paths = (os.environ.get("PYTHONPATH", ""), settings.path)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    asyncio.run(Agent(settings).run())


if __name__ == "__main__":
    main()
