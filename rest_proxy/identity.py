"""As whom the proxy logs in at the cluster and at the schema registry: as itself, or as the caller of a request."""

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from typing_extensions import override

from core_broker.client.errors import NotAllowed, Unreachable
from core_broker.client.handshake import check_handshake
from core_broker.client.settings import ClientSettings
from core_broker.errors import ErrorCode
from core_broker.service.clock import Clock, SystemClock
from core_broker.service.settings import Properties
from core_broker.web_access.callers import BearerCredentials, PasswordCredentials
from rest_proxy.settings import ProxySettings
from schema_registry.client.settings import RegistryClientSettings

log = logging.getLogger(__name__)

_CHECKED_SECONDS: Final = 5.0
"""How long a login at the cluster counts for new clients and for administration."""
_REFUSED_SECONDS: Final = 1.0
"""How long a refusal counts: a caller that goes on costs the cluster one login a second."""
_REFUSED: Final = "The Kafka cluster does not accept this login"
_STREAM_SECONDS_MIN: Final = 1.0
_NO_TOKEN: Final = "expired"
_NO_TOKEN_SECONDS: Final = 5.0
_SASL: Final = "sasl."
_PASSWORD_KEYS: Final = ("sasl.username", "sasl.password")
_MECHANISMS: Final = ("sasl.mechanism", "sasl.mechanisms")


class Identity:
    """The proxy itself, by its own settings; what differs for callers is in the class below."""

    owner = ""
    """The principal of a caller, such as `User:alice`; empty for the proxy."""
    is_slow = False
    """Whether its clients of the library take a second to be made, on threads."""

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings

    @property
    def has_expired(self) -> bool:
        """Whether nothing may be done with it any more."""
        return self.expires_within(0)

    def expires_within(self, seconds: float) -> bool:  # noqa: ARG002 - the proxy itself never does
        """Whether that is so after this time, unless there is a newer token by then."""
        return False

    def kafka(self, properties: Properties = ()) -> ClientSettings:
        """How to reach the cluster; `properties` are those of one kind of client."""
        return self._settings.kafka(properties)

    def registry(self) -> RegistryClientSettings:
        """How to reach the schema registry."""
        return self._settings.registry()

    def check(self, *, fresh_seconds: float = _CHECKED_SECONDS) -> None:
        """Raise NotAllowed if the cluster does not accept this login any more; blocks.

        The library would try again until the time of a call is over, and then say only that it took too long. A login
        counts for `fresh_seconds`.
        """

    def check_stream(self) -> None:
        """The same for something that stays open for long; a login counts as long there as at the door."""

    @property
    def stream_check_seconds(self) -> float:
        """After how long `check_stream` should be called again."""
        return float("inf")


class CallerIdentity(Identity):
    """A caller with a password or a token, which the cluster gets as it is."""

    def __init__(
        self,
        settings: ProxySettings,
        owner: str,
        credentials: PasswordCredentials | BearerCredentials,
        *,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(settings)
        self.owner = owner
        self._credentials = credentials
        self._clock = clock or SystemClock()
        self._skew_ms = settings.sasl_oauthbearer_clock_skew_seconds * 1000
        self._lock = threading.Lock()
        self._accepted_at = self._refused_at = float("-inf")
        self._stream_seconds = max(_STREAM_SECONDS_MIN, settings.authentication_cache_ttl_ms / 1000)
        self.is_slow = isinstance(credentials, BearerCredentials)

    @override
    def __repr__(self) -> str:
        return f"CallerIdentity({self.owner!r})"

    def renew(self, credentials: PasswordCredentials | BearerCredentials) -> None:
        """Use a token of the same caller from now on, if it is valid for longer."""
        own = self._credentials
        match own, credentials:
            case BearerCredentials(), BearerCredentials() if credentials.expires_at_ms > own.expires_at_ms:
                self._credentials = credentials

    @property
    def expires_at_ms(self) -> float:
        """When the newest token expires; never, for a password."""
        own = self._credentials
        return own.expires_at_ms + self._skew_ms if isinstance(own, BearerCredentials) else float("inf")

    @override
    def expires_within(self, seconds: float) -> bool:
        return self.expires_at_ms - seconds * 1000 <= self._clock.now_ms()

    @override
    def kafka(self, properties: Properties = ()) -> ClientSettings:
        found = self._settings.kafka_of_callers(properties)
        match self._credentials:
            case PasswordCredentials(user=user, password=password):
                login = dict(zip(_PASSWORD_KEYS, (user, password), strict=True))
                return replace(found, properties={**found.properties, **login})
            case BearerCredentials():
                known = {key: value for key, value in found.properties.items() if not key.startswith(_SASL)}
                return replace(found, properties={**known, _MECHANISMS[0]: "OAUTHBEARER"}, token=self._token)

    @override
    def registry(self) -> RegistryClientSettings:
        found = self._settings.registry()
        if not self._settings.schema_registry_as_caller:
            return found
        login: Mapping[str, Any]
        match self._credentials:
            case PasswordCredentials(user=user, password=password):
                login = {"user_info": f"{user}:{password}", "bearer_token": None}
            case BearerCredentials(token=token):
                login = {"user_info": None, "bearer_token": token}
        # Nor does the proxy's certificate say there who asks.
        return replace(found, **login, certificate_location=None, key_location=None, key_password=None)

    @override
    def check(self, *, fresh_seconds: float = _CHECKED_SECONDS) -> None:
        if self.has_expired:
            raise _refusal("The token of this login has expired")
        with self._lock:
            now = self._clock.monotonic()
            if now - self._accepted_at < fresh_seconds:
                return
            if now - self._refused_at < _REFUSED_SECONDS:
                raise _refusal(_REFUSED)
            try:
                check_handshake(self.kafka())
            except NotAllowed as error:
                log.info("the cluster refuses a caller", extra={"caller": self.owner, "reason": str(error)})
                self._accepted_at, self._refused_at = float("-inf"), self._clock.monotonic()
                raise _refusal(_REFUSED) from None
            except Unreachable:
                return  # what follows says so
            self._accepted_at = self._clock.monotonic()

    @override
    def check_stream(self) -> None:
        self.check(fresh_seconds=self._stream_seconds)

    @property
    @override
    def stream_check_seconds(self) -> float:
        return max(0.0, min(self._stream_seconds, (self.expires_at_ms - self._clock.now_ms()) / 1000))

    def _token(self) -> tuple[str, float]:
        own = self._credentials
        assert isinstance(own, BearerCredentials), "only tokens are asked for"
        if self.has_expired:
            # With an expired token, or none, the library takes ten seconds to make a client; the cluster refuses this.
            return _NO_TOKEN, self._clock.now_ms() / 1000 + _NO_TOKEN_SECONDS
        return own.token, self.expires_at_ms / 1000


def _refusal(message: str) -> NotAllowed:
    return NotAllowed(message, code=ErrorCode.SASL_AUTHENTICATION_FAILED)
