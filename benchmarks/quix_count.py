"""Words counted in Quix Streams, until its standard input is closed.

    python benchmarks/quix_count.py '{"servers": …, "reads": …, "writes": …, …}'

As `quix_operator`, it runs where Quix Streams is installed. States are in RocksDB, and every
change goes to a changelog topic, from which they are restored: its defaults. A state is
that of the key of a message.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # last: names of its modules are taken elsewhere

from quix_operator import run


def counted(value, state):
    """Count a word."""
    number = state.get("n", 0) + 1
    state.set("n", number)
    return {"seed": value["seed"], "word": value["word"], "n": number}


if __name__ == "__main__":
    run(sys.argv[1], lambda records: records.apply(counted, stateful=True))
