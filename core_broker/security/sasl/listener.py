"""What clients of one listener may log in with, made from the settings."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.security.sasl.jwks import JsonWebKeys, KeysUnavailable, times_of
from core_broker.security.sasl.jwt import TokenValidator, rules_of
from core_broker.security.sasl.mechanism import Mechanism
from core_broker.security.sasl.oauthbearer import OAuthBearerServer
from core_broker.security.sasl.plain import PlainServer, PlainUsers
from core_broker.security.sasl.scram import BY_NAME
from core_broker.security.sasl.scram_server import ScramServer, ScramServices
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings
from core_broker.settings.sasl import SASL_PROTOCOLS

DELAYED_MAX: Final = 1000
"""Connections that may wait for the answer to a failed login; further ones are closed at once."""


class EnabledMechanism(msgspec.Struct, frozen=True):
    """One mechanism of a listener."""

    begin: Callable[[], Mechanism]
    """Begins an exchange with one client."""
    session_ms_max: int
    """After how long a client has to log in again; 0 for never."""


class SaslListener(msgspec.Struct, frozen=True, kw_only=True):
    """How clients of one listener log in."""

    mechanisms: Mapping[str, EnabledMechanism]
    receive_bytes_max: int
    failure_delay_seconds: float


class SaslListeners:
    """All listeners with SASL of this node, and the keys that they need."""

    def __init__(self, settings: BrokerSettings, clock: Clock, scram: ScramServices) -> None:
        self._clock = clock
        self._scram = scram
        self._keys: dict[str, JsonWebKeys] = {}
        names = [listener.name for listener in settings.listeners]
        self._by_name = {
            name: self._listener(settings, name) for name in names if settings.security_protocol(name) in SASL_PROTOCOLS
        }

    def get(self, name: str) -> SaslListener | None:
        """The listener with a name; None if its clients do not log in."""
        return self._by_name.get(name)

    async def load_keys(self) -> None:
        """Read the keys that are files of this machine. Raises BrokerError if they cannot be read."""
        for keys in self._keys.values():
            if keys.is_required_at_start:
                try:
                    await keys.load()
                except KeysUnavailable as error:
                    reason = f"sasl.oauthbearer.jwks.endpoint.url={keys.url}: {error}"
                    raise BrokerError(ErrorCode.INVALID_CONFIG, reason) from None

    async def run(self) -> None:
        """Read the keys of identity providers again and again."""
        async with asyncio.TaskGroup() as group:
            for keys in self._keys.values():
                group.create_task(keys.run())

    def _listener(self, settings: BrokerSettings, name: str) -> SaslListener:
        mechanisms = dict(self._mechanisms(settings, name))
        settings = settings.for_listener(name)
        return SaslListener(
            mechanisms=mechanisms,
            receive_bytes_max=settings.sasl_server_max_receive_size,
            failure_delay_seconds=settings.connection_failed_authentication_delay_ms / 1000,
        )

    def _mechanisms(self, settings: BrokerSettings, listener: str) -> Iterator[tuple[str, EnabledMechanism]]:
        of_all = settings
        settings = of_all.for_listener(listener)
        for name in settings.sasl_enabled_mechanisms:
            settings = of_all.for_mechanism(listener, name)
            yield name, EnabledMechanism(self._beginning(name, settings), settings.connections_max_reauth_ms)

    def _beginning(self, mechanism: str, settings: BrokerSettings) -> Callable[[], Mechanism]:
        """How to begin an exchange, with everything prepared that exchanges share."""
        if mechanism == "PLAIN":
            login = settings.jaas_login
            users = PlainUsers({} if login is None else login.users)
            return lambda: PlainServer(users)
        if mechanism == "OAUTHBEARER":
            keys = self._keys_of(settings)
            validator = TokenValidator(keys, rules_of(settings), self._clock)
            return lambda: OAuthBearerServer(validator, keys.refreshed)
        scram = BY_NAME[mechanism]
        return lambda: ScramServer(scram, self._scram)

    def _keys_of(self, settings: BrokerSettings) -> JsonWebKeys:
        url = settings.sasl_oauthbearer_jwks_endpoint_url
        assert url is not None, "settings without keys are refused"
        keys = self._keys.get(url)
        if keys is None:
            keys = self._keys[url] = JsonWebKeys(url, self._clock, times_of(settings))
        return keys
