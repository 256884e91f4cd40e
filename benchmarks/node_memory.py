"""What an agent, a template and a processor take of a node's memory: estimated, and real.

    python benchmarks/node_memory.py [--app chain:app]

The estimate is that of a start on YARN or Kubernetes. Beside it is what a real agent, and the
template and the processor of one operator that it has started, have resident; all on this
machine, without Spark. `set_up` of the operator is run.
"""

import argparse
import tempfile
import time
from pathlib import Path

import psutil

from encryption import HERE, NODE, agent_of
from sojourn.app.loading import load
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.nodes.memory_need import MemoryNeed
from sojourn.spark.driver.state.checkpoints import Checkpoints


def real_bytes(folder, address):
    """Return the memory of an agent, of the template of an operator, and of a processor."""
    layout, state = Layout(load(address), address), Checkpoints(folder / "state")
    part, *_ = layout.parts
    operator, *_ = layout.parts[part].operators
    with Controller(folder / "hosts", tasks=lambda _stage: 1, binds=HERE) as controller:
        controller.launch(layout.host(part, folder, state, dict.fromkeys(layout.functions, 1)))
        with agent_of(controller, part, folder):
            controller.place(operator, {NODE: 1})
            while controller.placed(operator) != {NODE: 1}:
                time.sleep(0.01)
            (agent,) = (
                each
                for each in psutil.Process().children()
                if "sojourn.spark.agent" in each.cmdline()
            )
            (template,) = agent.children()
            (processor,) = template.children()
            return [each.memory_info().rss for each in (agent, template, processor)]


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--app", default="chain:app")
    asked = parser.parse_args()
    need = MemoryNeed.measured(asked.app)
    with tempfile.TemporaryDirectory() as temporary:
        agent, template, processor = real_bytes(Path(temporary), asked.app)
    for name, estimated, real in (
        ("agent", need.agent_bytes, agent),
        ("template", need.processor_bytes, template),
        ("processor", need.processor_bytes, processor),
        ("task", need.task_bytes, None),
    ):
        beside = "" if real is None else f", really {real / 2**20:.1f} MiB"
        print(f"{name:9}: {estimated / 2**20:.1f} MiB{beside}")


if __name__ == "__main__":
    main()
