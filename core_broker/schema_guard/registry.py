"""The broker's HTTP client of a schema registry.

It uses only calls that every Confluent-compatible registry has, except for GUIDs, which Confluent added in version 8.
"""

import asyncio
import logging
import ssl
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar
from urllib.parse import urlsplit

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.metrics import BrokerMetrics
from core_broker.schema_guard.framing import BadFraming, guid_text
from core_broker.schema_guard.record_names import (
    NamelessSchema,
    RecordName,
    avro_name,
    json_schema_name,
    protobuf_names,
)
from core_broker.service.client_tls import ClientContext
from core_broker.service.clock import Clock
from core_broker.settings.schema_guard import SchemaGuardSettings

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)
T = TypeVar("T")

_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"
_NOT_FOUND: Final = 404
_NOT_FOUND_CODES: Final = frozenset({40401, 40402, 40403})
"""Subject, version and schema not found. Any other 404 does not come from a registry."""
_NOT_ALLOWED: Final = frozenset({401, 403})
_RESPONSE_BYTES_MAX: Final = 16 * 1024 * 1024
_REASON_LENGTH_MAX: Final = 300
_WARNING_INTERVAL_S: Final = 30.0
_KEEP_ALIVE_S: Final = 4.0
"""Less than the five seconds after which servers close idle connections."""
_DEFAULT_CONTEXT: Final = "."


class RegistryUnavailable(BrokerError):
    """It could not be checked whether a schema is registered. Producers of every version retry after this error."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.NOT_ENOUGH_REPLICAS, f"schema ids cannot be checked now: {reason}")
        self.reason = reason


class _SubjectVersion(msgspec.Struct):
    subject: str


class _ContextId(msgspec.Struct):
    id: int
    context: str = _DEFAULT_CONTEXT


class _SchemaString(msgspec.Struct):
    schema: str
    schema_type: str = msgspec.field(name="schemaType", default="AVRO")


class _Refusal(msgspec.Struct):
    error_code: int


class _Unusable(Exception):
    """A response that cannot be used."""


class Registry:
    """A schema registry at one or more addresses. Every lookup may raise RegistryUnavailable."""

    def __init__(self, settings: SchemaGuardSettings, *, clock: Clock, metrics: BrokerMetrics) -> None:
        self._settings = settings
        self._urls = [url.rstrip("/") for url in settings.confluent_schema_registry_url]
        self._clock = clock
        self._metrics = metrics
        self._room = asyncio.Semaphore(settings.confluent_schema_validator_connections_max)
        self._opening = asyncio.Lock()
        self._client: httpx2.AsyncClient | None = None
        self._down_until = 0.0
        self._reason = ""
        self._warned_at: float | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def is_registered(self, question: tuple[int, str]) -> bool | None:
        """Whether a schema id has a version, not deleted, under a subject; None if not."""
        schema_id, subject = question
        versions = await self._ask(
            f"/schemas/ids/{schema_id}/versions", list[_SubjectVersion], parameters={"subject": subject}
        )
        return True if any(version.subject == subject for version in versions or ()) else None

    async def id_of(self, guid: bytes) -> int | None:
        """The id for a GUID in the context of the registry's URL."""
        ids = await self._ask(f"/schemas/guids/{guid_text(guid)}/ids", list[_ContextId])
        context = _context_of(self._urls[0]) if self._urls else _DEFAULT_CONTEXT
        return next((found.id for found in ids or () if _plain_context(found.context) == context), None)

    async def record_name_of(self, schema_id: int) -> RecordName | None:
        """The record name of a schema."""
        path = f"/schemas/ids/{schema_id}"
        found = await self._ask(path, _SchemaString)
        if found is None:
            return None
        try:
            match found.schema_type:
                case "AVRO":
                    return _always(avro_name(found.schema))
                case "JSON":
                    return _always(json_schema_name(found.schema))
                case "PROTOBUF":
                    file = await self._ask(path, _SchemaString, parameters={"format": "serialized"})
                    return None if file is None else protobuf_names(file.schema)
                case kind:
                    return _nameless(f"schemas of type {kind} are not supported")
        except NamelessSchema as error:
            return _nameless(str(error))

    async def _ask(self, path: str, answer: type[T], *, parameters: dict[str, str] | None = None) -> T | None:
        """Try the addresses in order; None if a registry responds that it was not found."""
        if not self._urls:
            raise RegistryUnavailable("the broker needs the setting confluent.schema.registry.url")
        async with self._room:
            if self._clock.monotonic() < self._down_until:
                raise RegistryUnavailable(self._reason)
            self._metrics.registry_questions += 1
            reasons = []
            for url in self._urls:
                try:
                    found = await self._ask_one(url + path, answer, parameters)
                except _Unusable as error:
                    reasons.append(f"{_without_secrets(url)}: {error}")
                else:
                    if self._warned_at is not None:
                        self._warned_at = None
                        log.info("schema registry available again")
                    return found
        raise self._note_failure("; ".join(reasons))

    async def _ask_one(self, url: str, answer: type[T], parameters: dict[str, str] | None) -> T | None:
        client = self._client or await self._open()
        import httpx2  # loaded by now

        try:
            async with (
                asyncio.timeout(self._settings.confluent_schema_validator_request_timeout_ms / 1000),
                client.stream("GET", url, params=parameters) as response,
            ):
                return _decode_response(response.status_code, await _read_body(response), answer)
        except TimeoutError:
            raise _Unusable("no response in time") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            raise _Unusable(str(error)[:_REASON_LENGTH_MAX] or type(error).__name__) from error

    async def _open(self) -> "httpx2.AsyncClient":
        """Create the client at the first lookup; imports the library in a thread, because that takes a while."""
        async with self._opening:
            if self._client is None:
                try:
                    self._client = await asyncio.to_thread(self._make_client)
                except OSError as error:
                    raise _Unusable(f"confluent.ssl.truststore/keystore.location cannot be read: {error}") from error
                except ImportError as error:
                    raise _Unusable(f"{error}; install caudal[broker]") from error
            return self._client

    def _make_client(self) -> "httpx2.AsyncClient":
        import httpx2

        logging.getLogger("httpx2").setLevel(logging.WARNING)  # it would log every request
        settings = self._settings
        verify: ssl.SSLContext | bool = False
        if any(url.startswith("https://") for url in self._urls):
            verify = ClientContext.of_files(
                settings.confluent_ssl_truststore_location,
                settings.confluent_ssl_keystore_location,
                settings.confluent_ssl_key_location,
                settings.confluent_ssl_key_password,
            )
        headers = {"Accept": _ACCEPT}
        if settings.confluent_bearer_auth_token is not None:
            headers["Authorization"] = f"Bearer {settings.confluent_bearer_auth_token}"
        auth = None
        if settings.confluent_basic_auth_credentials_source == "USER_INFO":
            user, _, password = (settings.confluent_basic_auth_user_info or "").partition(":")
            auth = httpx2.BasicAuth(user, password)
        count = settings.confluent_schema_validator_connections_max
        return httpx2.AsyncClient(
            auth=auth,
            headers=headers,
            verify=verify,
            timeout=settings.confluent_schema_validator_request_timeout_ms / 1000,
            limits=httpx2.Limits(
                max_connections=count, max_keepalive_connections=count, keepalive_expiry=_KEEP_ALIVE_S
            ),
            trust_env=False,
        )

    def _note_failure(self, reason: str) -> RegistryUnavailable:
        """Pause requests to the registry for a moment, and log a warning from time to time."""
        now = self._clock.monotonic()
        self._metrics.registry_failures += 1
        self._reason = reason
        self._down_until = now + self._settings.confluent_schema_validator_missing_ttl_ms / 1000
        if self._warned_at is None or now - self._warned_at >= _WARNING_INTERVAL_S:
            self._warned_at = now
            log.warning("schema registry unavailable, rejecting writes to guarded topics", extra={"reason": reason})
        return RegistryUnavailable(reason)


async def _read_body(response: "httpx2.Response") -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _RESPONSE_BYTES_MAX:
            raise _Unusable(f"the response has more than {_RESPONSE_BYTES_MAX} bytes")
    return bytes(body)


def _decode_response(status: int, body: bytes, answer: type[T]) -> T | None:
    try:
        if status == _NOT_FOUND and msgspec.json.decode(body, type=_Refusal).error_code in _NOT_FOUND_CODES:
            return None
        if status == 200:
            return msgspec.json.decode(body, type=answer)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _Unusable(f"HTTP {status} with an invalid body") from error
    if status in _NOT_ALLOWED:
        raise _Unusable(f"HTTP {status}: the broker needs a user of the registry who may READ the topic's subjects")
    raise _Unusable(f"HTTP {status}")


def _always(name: str) -> RecordName:
    return lambda _: name


def _nameless(reason: str) -> RecordName:
    def refuse(_: bytes) -> NoReturn:
        raise BadFraming(reason)

    return refuse


def _context_of(url: str) -> str:
    """The context in the URL of a registry."""
    path: list[Any] = urlsplit(url).path.split("/")
    return _plain_context(path[path.index("contexts") + 1]) if "contexts" in path[:-1] else _DEFAULT_CONTEXT


def _plain_context(name: str) -> str:
    """The name of a context as registries write it: with a leading dot, without colons."""
    return "." + name.strip(":").removeprefix(".")


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
