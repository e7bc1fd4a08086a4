"""The questions that a broker asks a schema registry, over HTTP.

Only calls that every Confluent-compatible registry has, except for GUIDs, which came with version 8 of Confluent's.
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
from core_broker.service.clock import Clock
from core_broker.settings.schema_guard import SchemaGuardSettings

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)
T = TypeVar("T")

_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"
_NOT_FOUND: Final = 404
_UNKNOWN_THERE: Final = frozenset({40401, 40402, 40403})
"""Subject, version and schema not found. Any other 404 comes from something that is no registry."""
_ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
_REASON_LENGTH_MAX: Final = 300
_COMPLAIN_EVERY_S: Final = 30.0
_KEEP_ALIVE_S: Final = 4.0
"""Less than the five seconds after which servers close idle connections."""
_DEFAULT_CONTEXT: Final = "."


class RegistryUnavailable(BrokerError):
    """Nobody could say whether a schema is registered. Producers of every version send the same batch again."""

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
    """An answer that answers nothing."""


class Registry:
    """A schema registry behind one or more addresses. Every question raises RegistryUnavailable or is answered."""

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
        self._complained_at: float | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def is_registered(self, question: tuple[int, str]) -> bool | None:
        """Whether a schema id has a version, not deleted, under a subject; None for no."""
        schema_id, subject = question
        versions = await self._ask(
            f"/schemas/ids/{schema_id}/versions", list[_SubjectVersion], parameters={"subject": subject}
        )
        return True if any(version.subject == subject for version in versions or ()) else None

    async def id_of(self, guid: bytes) -> int | None:
        """The id that a GUID stands for in the context that we ask in."""
        ids = await self._ask(f"/schemas/guids/{guid_text(guid)}/ids", list[_ContextId])
        context = _context_of(self._urls[0]) if self._urls else _DEFAULT_CONTEXT
        return next((found.id for found in ids or () if _plain_context(found.context) == context), None)

    async def record_name_of(self, schema_id: int) -> RecordName | None:
        """How records of a schema are named."""
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
                    return _nameless(f"schemas of type {kind} are not known here")
        except NamelessSchema as error:
            return _nameless(str(error))

    async def _ask(self, path: str, answer: type[T], *, parameters: dict[str, str] | None = None) -> T | None:
        """Ask the addresses in order; None when a registry says that there is no such thing."""
        if not self._urls:
            raise RegistryUnavailable("the broker must be given confluent.schema.registry.url")
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
                    self._is_back()
                    return found
        raise self._is_down("; ".join(reasons))

    async def _ask_one(self, url: str, answer: type[T], parameters: dict[str, str] | None) -> T | None:
        client = self._client or await self._open()
        import httpx2  # loaded by now

        try:
            async with (
                asyncio.timeout(self._settings.confluent_schema_validator_request_timeout_ms / 1000),
                client.stream("GET", url, params=parameters) as response,
            ):
                return _read(response.status_code, await _bounded(response), answer)
        except TimeoutError:
            raise _Unusable("no answer in time") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            raise _Unusable(str(error)[:_REASON_LENGTH_MAX] or type(error).__name__) from error

    async def _open(self) -> "httpx2.AsyncClient":
        """Load the library, in a thread because that takes a while, when the first question is asked."""
        async with self._opening:
            if self._client is None:
                try:
                    self._client = await asyncio.to_thread(self._make_client)
                except OSError as error:
                    raise _Unusable(f"confluent.ssl.truststore.location cannot be read: {error}") from error
                except ImportError as error:
                    raise _Unusable(f"{error}; install caudal[broker]") from error
            return self._client

    def _make_client(self) -> "httpx2.AsyncClient":
        import httpx2

        logging.getLogger("httpx2").setLevel(logging.WARNING)  # it would write a line for each question
        settings = self._settings
        verify: ssl.SSLContext | bool = False
        if any(url.startswith("https://") for url in self._urls):
            verify = ssl.create_default_context(cafile=settings.confluent_ssl_truststore_location)
        auth = None
        if settings.confluent_basic_auth_credentials_source == "USER_INFO":
            user, _, password = (settings.confluent_basic_auth_user_info or "").partition(":")
            auth = httpx2.BasicAuth(user, password)
        count = settings.confluent_schema_validator_connections_max
        return httpx2.AsyncClient(
            auth=auth,
            headers={"Accept": _ACCEPT},
            verify=verify,
            timeout=settings.confluent_schema_validator_request_timeout_ms / 1000,
            limits=httpx2.Limits(
                max_connections=count, max_keepalive_connections=count, keepalive_expiry=_KEEP_ALIVE_S
            ),
            trust_env=False,
        )

    def _is_down(self, reason: str) -> RegistryUnavailable:
        """Leave the registry alone for a moment, and tell the operator from time to time."""
        now = self._clock.monotonic()
        self._metrics.registry_failures += 1
        self._reason = reason
        self._down_until = now + self._settings.confluent_schema_validator_missing_ttl_ms / 1000
        if self._complained_at is None or now - self._complained_at >= _COMPLAIN_EVERY_S:
            self._complained_at = now
            log.warning("schema registry does not answer, guarded topics cannot be written", extra={"reason": reason})
        return RegistryUnavailable(reason)

    def _is_back(self) -> None:
        if self._complained_at is not None:
            self._complained_at = None
            log.info("schema registry answers again")


async def _bounded(response: "httpx2.Response") -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _ANSWER_BYTES_MAX:
            raise _Unusable(f"an answer of more than {_ANSWER_BYTES_MAX} bytes")
    return bytes(body)


def _read(status: int, body: bytes, answer: type[T]) -> T | None:
    try:
        if status == _NOT_FOUND and msgspec.json.decode(body, type=_Refusal).error_code in _UNKNOWN_THERE:
            return None
        if status == 200:
            return msgspec.json.decode(body, type=answer)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _Unusable(f"HTTP {status} with a body that no registry sends") from error
    raise _Unusable(f"HTTP {status}")


def _always(name: str) -> RecordName:
    return lambda _: name


def _nameless(reason: str) -> RecordName:
    def refuse(_: bytes) -> NoReturn:
        raise BadFraming(reason)

    return refuse


def _context_of(url: str) -> str:
    """The context that a registry's address leads into."""
    path: list[Any] = urlsplit(url).path.split("/")
    return _plain_context(path[path.index("contexts") + 1]) if "contexts" in path[:-1] else _DEFAULT_CONTEXT


def _plain_context(name: str) -> str:
    """A context's name as registries write it: with a leading dot, without colons."""
    return "." + name.strip(":").removeprefix(".")


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
