"""A broker that a run starts for itself, and that is started again if it ends."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.broker_watch import BrokerWatch
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.ports import HOST
from sojourn.spark.driver.settings import SparkSettings

__all__ = ["OwnBroker"]


@dataclass(frozen=True, slots=True)
class OwnBroker:
    """A broker, and who starts it again."""

    broker: Broker
    watch: BrokerWatch

    @classmethod
    def start(
        cls,
        stack: ExitStack,
        settings: SparkSettings,
        *,
        data: Path | None,
        lock: int,
        failed: Callable[[str], None],
    ) -> "OwnBroker":
        """Start one until *stack* ends; with *data* it keeps what it has for the next run."""
        broker = Broker(
            data=data,
            port=settings.broker_port,
            # where executors reach the driver, they reach it as well
            host=settings.spark.get("spark.driver.host", HOST),
            secured=settings.broker_secured,
            inherits=[lock],
        )
        stack.enter_context(broker)
        return cls(broker, stack.enter_context(BrokerWatch(broker, failed, data)))

    def cluster(self, settings: SparkSettings) -> Cluster:
        """Return how it is reached, with other *settings* of clients."""
        found = self.broker.cluster
        return Cluster(found.servers, {**settings.kafka, **found.options})
