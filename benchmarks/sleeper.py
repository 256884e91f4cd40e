"""An operator that sleeps for as long as its record says, and sends it on."""

import time

from sojourn.spark.wire.processor import OutputRecord


class Sleeper:
    """The job of a host; its work takes time and no core."""

    def set_up(self):
        """Need nothing."""

    def tear_down(self):
        """Leave nothing."""

    def __call__(self, record):
        """Sleep."""
        time.sleep(float(record.payload))
        return [OutputRecord("out", record.payload)]


def sleeper(_argument):
    """Return the job."""
    return Sleeper()
