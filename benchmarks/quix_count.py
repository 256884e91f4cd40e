"""Words counted in Quix Streams, until its standard input is closed.

    python benchmarks/quix_count.py '{"servers": …, "reads": …, "writes": …, …}'

It runs where Quix Streams is installed, and imports nothing of ours. States are in RocksDB, and
every change goes to a changelog topic, from which they are restored: its defaults. A state is
that of the key of a message.
"""

import json
import sys
import threading

from quixstreams import Application


def counted(value, state):
    """Count a word."""
    number = state.get("n", 0) + 1
    state.set("n", number)
    return {"seed": value["seed"], "word": value["word"], "n": number}


def main(text):
    """Run it."""
    asked = json.loads(text)
    app = Application(
        broker_address=asked["servers"],
        consumer_group=asked["group"],
        auto_offset_reset="earliest",
        processing_guarantee="at-least-once",
        commit_interval=asked["commit_s"],
        producer_extra_config={"linger.ms": asked["linger_ms"]},
        state_dir=asked["state"],
        loglevel="WARNING",
    )
    reads = app.topic(asked["reads"], value_deserializer="json")
    writes = app.topic(asked["writes"], value_serializer="json")
    app.dataframe(reads).apply(counted, stateful=True).to_topic(writes)

    def ended():
        sys.stdin.read()
        app.stop()

    threading.Thread(target=ended, daemon=True).start()
    app.run()


if __name__ == "__main__":
    main(sys.argv[1])
