"""One operator in Quix Streams that passes records on, until its standard input is closed.

    python benchmarks/quix_operator.py '{"servers": …, "reads": …, "writes": …, …}'

It runs where Quix Streams is installed, and imports nothing of ours. As with us, offsets are
committed when the broker has confirmed the results. What is not set is best for latency as it
is: a topic is read record by record, and the broker answers as soon as there is one.
"""

import json
import sys
import threading

from quixstreams import Application


def passed(value):
    """Pass it on."""
    return {"seed": value["seed"]}


def run(text, step):
    """Run what *step* makes of the stream of records that is read."""
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
    step(app.dataframe(reads)).to_topic(writes)

    def ended():
        sys.stdin.read()
        app.stop()

    threading.Thread(target=ended, daemon=True).start()
    app.run()


if __name__ == "__main__":
    run(sys.argv[1], lambda records: records.apply(passed))
