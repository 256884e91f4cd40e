"""The brokers that an application uses: ours, or those of somebody else.

Options for Kafka's clients may be secrets: they are handed on and shown nowhere.
"""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches

from confluent_kafka import KafkaError, KafkaException

# the types of the package do not say that it exports all of them
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from sojourn.errors import BadInput, BrokerFailed
from sojourn.spark.agent.kafka_reach import KafkaBrokers
from sojourn.spark.driver.kafka.topics import check_topic, partitions_led

__all__ = ["Cluster"]

_PLAIN = "PLAINTEXT"
_ANSWER_S = 10.0
_PATIENCE_S = 60.0
_LOOK_S = 0.02
# What one operator has committed and the next has not read must not be deleted, however long
# an application stands still.
_KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
# A machine that was cut off the network may send, once it is back, what others have written
# meanwhile. Brokers from 3.6 on refuse what is that late. A record takes milliseconds; the rest
# is for the clocks of nodes.
_TIMESTAMPS, _OLDEST_MS = "message.timestamp.type", "message.timestamp.before.max.ms"
_FENCE = {_TIMESTAMPS: "CreateTime", _OLDEST_MS: "10000"}
_ANY_AGE_MS = 2**63 - 1
# What topics between operators were made with once; those that still have it are changed.
_BOUNDED_ONCE = {"retention.ms": str(24 * 3600 * 1000), "retention.bytes": str(4 << 30)}
# As librdkafka calls them, and as Java does.
_IN_JAVA = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.key.password": "ssl.key.password",
}
_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_FOR_JAVA_ALONE = (
    "max.request.size",
    "sasl.jaas.config",
    "ssl.truststore.",
    "ssl.keystore.type",
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Brokers at *servers*, reached with *options* as librdkafka names them."""

    servers: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def for_clients(self) -> dict[str, str]:
        """Settings of clients in Python."""
        told = {
            name: value
            for name, value in self.options.items()
            if not name.startswith(_FOR_JAVA_ALONE)
        }
        return {"bootstrap.servers": self.servers, **told}

    @property
    def for_spark(self) -> dict[str, str]:
        """The same for Spark, whose client is Java's.

        >>> asked = {"sasl.mechanisms": "PLAIN", "sasl.username": "me", "sasl.password": "s"}
        >>> sorted(Cluster("kafka:9093", asked).for_spark)
        ['kafka.bootstrap.servers', 'kafka.sasl.jaas.config', 'kafka.sasl.mechanism']
        """
        told = {_IN_JAVA.get(name, name): value for name, value in self.options.items()}
        user, password = told.pop("sasl.username", None), told.pop("sasl.password", None)
        if user is not None and "sasl.jaas.config" not in told:
            module = _LOGIN.get(told.get("sasl.mechanism", "PLAIN"), _LOGIN["PLAIN"])
            login = f"username={_quoted(user)} password={_quoted(password or '')}"
            told["sasl.jaas.config"] = f"{module} required {login};"
        if "ssl.ca.location" in self.options:
            told["ssl.truststore.type"] = "PEM"
        told["bootstrap.servers"] = self.servers
        return {f"kafka.{name}": value for name, value in told.items()}

    @property
    def for_tools(self) -> dict[str, str]:
        """The same for a file that Kafka's own tools read, and `sojourn run --kafka-options`.

        Java leaves alone what is not its own.
        """
        java = {name.removeprefix("kafka."): told for name, told in self.for_spark.items()}
        return {**self.for_clients, **java}

    def client(self) -> AdminClient:
        """Return a client to ask about topics."""
        # it would write to standard error whenever a broker goes away
        return AdminClient({**self.for_clients, "log_level": 0})

    def identity(self) -> str:
        """Return the id of the cluster. Raise `BrokerFailed` if nobody answers."""
        try:
            found = self.client().list_topics(timeout=_ANSWER_S)
        except KafkaException as error:
            raise BrokerFailed(
                f"no broker answers at {self.servers}",
                "check the address and the security options",
            ) from error
        return str(found.cluster_id)

    def brokers(self) -> KafkaBrokers:
        """Return the addresses that clients on nodes connect to: first these, then brokers'.

        Without an answer of the brokers there are only the first.
        """
        told = [each.strip().rpartition("://")[2] for each in self.servers.split(",")]
        with suppress(KafkaException):
            found = self.client().list_topics(timeout=_ANSWER_S).brokers.values()
            told += [f"{each.host}:{each.port}" for each in found]
        secured = self.options.get("security.protocol", _PLAIN).upper() != _PLAIN
        return KafkaBrokers(tuple(dict.fromkeys(told)), names=secured)

    def ensure(
        self,
        topics: Iterable[str],
        partitions: int,
        *,
        required: Mapping[str, str] | None = None,
        fenced: bool = False,
    ) -> dict[str, int]:
        """Return how many partitions topics have; those that are not there are made.

        New ones keep all records, for ever; if they are *fenced*, brokers refuse what a
        machine sends that was cut off, and comes back. Raise `BadInput` if one of the
        *required* is not there; their values say whose they are.
        """
        names = list(topics)
        for name in names:
            check_topic(name, partitions)
        client = self.client()
        try:
            there = partitions_led(client)
            for name, whose in (required or {}).items():
                if name not in there:
                    raise BadInput(self._missing(name, whose, there))
            new = [name for name in names if name not in there]
            if not (fenced and new and _are_made(client, new, partitions, _KEPT | _FENCE)):
                _are_made(client, new, partitions, _KEPT)
            until_s = time.monotonic() + _PATIENCE_S
            while not all((found := partitions_led(client)).get(name) for name in names):
                if time.monotonic() > until_s:
                    raise BrokerFailed(
                        f"topics were not ready after {_PATIENCE_S:g} s", "see the broker's log"
                    )
                time.sleep(_LOOK_S)
        except (KafkaException, TimeoutError) as error:
            raise BrokerFailed(
                f"topics could not be created: {error}",
                "check your permissions (ACLs), and see the broker's log",
            ) from error
        return {name: found[name] for name in names}

    def unbind(self, topics: Iterable[str]) -> list[str]:
        """Let *topics* keep all records that were made when they kept a day; return those.

        What somebody else has set is left as it is.
        """
        client = self.client()
        try:
            bounded = _with_settings(client, topics, _BOUNDED_ONCE)
            changed = [_unbound(name) for name in bounded]
            for done in client.incremental_alter_configs(changed).values() if changed else ():
                done.result(_ANSWER_S)
        except (KafkaException, TimeoutError) as error:
            raise BrokerFailed(
                f"the retention of topics between operators cannot be changed: {error}",
                "set their retention.ms and retention.bytes to -1, or get permission (ACL) to",
            ) from error
        return bounded

    def kept(self, topics: Iterable[str]) -> list[str]:
        """Return those of *topics* that keep all records, as `ensure` makes them.

        None if the brokers do not tell.
        """
        try:
            return _with_settings(self.client(), topics, _KEPT)
        except (KafkaException, TimeoutError):
            return []

    def fences(self, topics: Iterable[str]) -> dict[str, float]:
        """Return how many seconds after it was sent brokers refuse a record, by topic.

        Topics that take records of any age are left out, and all if the brokers do not tell.
        """
        found = {}
        with suppress(KafkaException, TimeoutError):
            for name, told in _settings(self.client(), topics).items():
                age_ms = int(told.get(_OLDEST_MS) or _ANY_AGE_MS)
                if told.get(_TIMESTAMPS) == "CreateTime" and age_ms < _ANY_AGE_MS:
                    found[name] = 1e-3 * age_ms
        return found

    def _missing(self, topic: str, whose: str, there: Iterable[str]) -> str:
        near = get_close_matches(topic, there, n=3)
        hint = f" (similar: {', '.join(near)})" if near else ""
        return (
            f"{whose}: there is no topic {topic} at {self.servers}{hint}; "
            "correct topic=, create it, or set create=True"
        )


def _are_made(
    client: AdminClient, topics: Iterable[str], partitions: int, config: Mapping[str, str]
) -> bool:
    """Make *topics*; return False if brokers are too old for a setting in *config*."""
    new = [NewTopic(name, partitions, -1, config=dict(config)) for name in topics]
    for made in client.create_topics(new).values() if new else ():
        try:
            _await_made(made)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.INVALID_CONFIG and config != _KEPT:
                return False
            raise
    return True


def _await_made(made: Future[None]) -> None:
    try:
        made.result(_ANSWER_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def _with_settings(
    client: AdminClient, topics: Iterable[str], settings: Mapping[str, str]
) -> list[str]:
    """Return those of *topics* that have these settings."""
    return [
        name
        for name, told in _settings(client, topics).items()
        if settings.items() <= told.items()
    ]


def _settings(client: AdminClient, topics: Iterable[str]) -> dict[str, dict[str, str | None]]:
    """Return the settings of *topics*."""
    places = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in topics]
    asked = client.describe_configs(places) if places else {}
    return {
        place.name: {name: entry.value for name, entry in told.result(_ANSWER_S).items()}
        for place, told in asked.items()
    }


def _unbound(topic: str) -> ConfigResource:
    return ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry(name, "-1", incremental_operation=AlterConfigOpType.SET)
            for name in _BOUNDED_ONCE
        ],
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
