"""The Kafka cluster that an application uses: Sojourn's own broker, or an external cluster.

Client options may contain secrets: they are passed to clients, and never printed.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches

from confluent_kafka import KafkaError, KafkaException

# the types of the package do not say that it exports all of them
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
)

from sojourn.errors import BadInput, BrokerFailed
from sojourn.spark.agent.kafka_reach import KafkaBrokers
from sojourn.spark.driver.kafka.topics import (
    await_leaders,
    check_topic,
    creating_topics,
    partitions_led,
)

_PLAIN = "PLAINTEXT"
_ANSWER_S = 10.0
# Retention must not delete what one operator has committed and the next has not read, even if
# the application is stopped for a long time.
_KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
# After a network partition a node may resend records that others have written meanwhile.
# Brokers from version 3.6 on reject records with timestamps that old. Sending takes
# milliseconds; the rest of the limit allows for clock skew between nodes.
_TIMESTAMPS, _OLDEST_MS = "message.timestamp.type", "message.timestamp.before.max.ms"
_FENCE = {_TIMESTAMPS: "CreateTime", _OLDEST_MS: "10000"}
_ANY_AGE_MS = 2**63 - 1
# librdkafka's names of options, and the names in Kafka's Java client.
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
    """Brokers at *servers*; *options* are client options under librdkafka's names."""

    servers: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def for_clients(self) -> dict[str, str]:
        """Settings for confluent-kafka, without options that only Java's client knows."""
        told = {
            name: value
            for name, value in self.options.items()
            if not name.startswith(_FOR_JAVA_ALONE)
        }
        return {"bootstrap.servers": self.servers, **told}

    @property
    def for_spark(self) -> dict[str, str]:
        """Options for Spark's Kafka source and sink, which use Java's client.

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
        """Properties for Kafka's command-line tools and `sojourn run --kafka-options`.

        They have the names of both clients: Java's client ignores unknown properties.
        """
        java = {name.removeprefix("kafka."): told for name, told in self.for_spark.items()}
        return {**self.for_clients, **java}

    def client(self) -> AdminClient:
        # at its default level it writes to standard error whenever a broker disconnects
        return AdminClient({**self.for_clients, "log_level": 0})

    def identity(self) -> str:
        """Return the id of the cluster. Raise `BrokerFailed` if no broker answers."""
        try:
            found = self.client().list_topics(timeout=_ANSWER_S)
        except KafkaException as error:
            raise BrokerFailed(
                f"no broker answers at {self.servers}",
                "check the address and the security options",
            ) from error
        return str(found.cluster_id)

    def brokers(self) -> KafkaBrokers:
        """Return the addresses that clients on nodes connect to.

        They are the bootstrap servers, then the addresses that brokers advertise, if they
        answer.
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
        """Create missing *topics*, and return the number of partitions of each.

        New topics have unlimited retention; if *fenced*, brokers reject records that a node
        sends late, after a network partition. Raise `BadInput` if a topic in *required* does
        not exist; its value names the owner, for the message.
        """
        names = list(topics)
        for name in names:
            check_topic(name, partitions)
        client = self.client()
        with creating_topics("check your permissions (ACLs), and see the broker's log"):
            there = partitions_led(client)
            for name, whose in (required or {}).items():
                if name not in there:
                    raise BadInput(self._missing(name, whose, there))
            new = [name for name in names if name not in there]
            # brokers that are too old for the fence get the topics without it
            if not (fenced and new and _are_made(client, new, partitions, _KEPT | _FENCE)):
                _are_made(client, new, partitions, _KEPT)
            found = await_leaders(client, lambda led: all(map(led.get, names)))
        return {name: found[name] for name in names}

    def kept(self, topics: Iterable[str]) -> list[str]:
        """Return the *topics* with unlimited retention, as `ensure` creates them.

        The list is empty if the brokers do not return their settings.
        """
        try:
            return _with_settings(self.client(), topics, _KEPT)
        except (KafkaException, TimeoutError):
            return []

    def fences(self, topics: Iterable[str]) -> dict[str, float]:
        """Return by topic the age, in seconds, from which brokers reject a record.

        Topics that accept records of any age are left out, and so are all topics if the
        brokers do not return their settings.
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
    """Create *topics*; return False if the brokers do not know a setting in *config*."""
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
    return [
        name
        for name, told in _settings(client, topics).items()
        if settings.items() <= told.items()
    ]


def _settings(client: AdminClient, topics: Iterable[str]) -> dict[str, dict[str, str | None]]:
    places = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in topics]
    asked = client.describe_configs(places) if places else {}
    return {
        place.name: {name: entry.value for name, entry in told.result(_ANSWER_S).items()}
        for place, told in asked.items()
    }


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
