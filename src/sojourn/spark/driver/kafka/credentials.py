"""Who may use a broker of ours: whoever has the password that was made for it.

A password over the loopback device, which nobody without rights over the machine can listen
to, needs no encryption.
"""

import secrets
from dataclasses import dataclass, field

__all__ = ["Credentials"]

_USER = "sojourn"
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_MECHANISM = "PLAIN"
_PROTOCOL = "SASL_PLAINTEXT"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user of a broker, and the *password*, which is shown nowhere.

    >>> Credentials("secret")
    Credentials(user='sojourn')
    """

    password: str = field(repr=False, default_factory=lambda: secrets.token_urlsafe(32))
    user: str = _USER

    @property
    def for_clients(self) -> dict[str, str]:
        """Options of clients, as librdkafka names them."""
        return {
            "security.protocol": _PROTOCOL,
            "sasl.mechanism": _MECHANISM,
            "sasl.username": self.user,
            "sasl.password": self.password,
        }

    @property
    def for_broker(self) -> dict[str, str]:
        """Properties of a broker that lets in nobody else, nor to the port of controllers."""
        known = f'{_MODULE} required username="{self.user}" password="{self.password}" '
        known += f'user_{self.user}="{self.password}";'
        return {
            "listener.security.protocol.map": f"{_PROTOCOL}:{_PROTOCOL},CONTROLLER:{_PROTOCOL}",
            "security.inter.broker.protocol": _PROTOCOL,
            "sasl.enabled.mechanisms": _MECHANISM,
            "sasl.mechanism.inter.broker.protocol": _MECHANISM,
            "sasl.mechanism.controller.protocol": _MECHANISM,
            f"listener.name.{_PROTOCOL.lower()}.plain.sasl.jaas.config": known,
            "listener.name.controller.plain.sasl.jaas.config": known,
        }
