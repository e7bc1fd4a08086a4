"""From the JSON of requests to the bytes of records."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

import msgspec

from core_broker.service.clock import Clock
from rest_proxy.errors import ProxyError
from rest_proxy.formats.binary import BinaryEncoder
from rest_proxy.formats.formats import NO_CHOICE, Format
from rest_proxy.formats.json_text import JsonEncoder, excerpt
from rest_proxy.formats.registry_calls import RegistryCalls
from rest_proxy.formats.rules import V3, Rules
from rest_proxy.formats.schema_choices import Target, check, find_schema
from rest_proxy.formats.string import StringEncoder
from schema_registry.client.models import RegisteredSchema
from schema_registry.client.registry_client import RegistryClient
from schema_registry.serdes.errors import SerdeError
from schema_registry.serdes.serializer import Writer, writer_by

_MAX_ENTRIES = 1_000
_MAX_CHARACTERS = 4 << 20
"""Limit on the total size of schema texts used as cache keys: clients choose them, and a parsed schema is many times
larger."""
_MAX_REASON = 600
_ERRORS = (SerdeError, msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError)
_decode = msgspec.json.Decoder().decode


class Encoder(Protocol):
    """Encodes keys, or values, of one format and schema."""

    @property
    def format(self) -> Format:
        """The format, also if the request left it to the schema."""

    @property
    def schema(self) -> RegisteredSchema | None:
        """The schema of the data, for responses; None if the format has none."""

    def encode(self, data: msgspec.Raw) -> bytes | None:
        """Encode one key or value from its JSON, None if it is null or missing; raises ProxyError."""


class Encoders:
    """A cache of the encoders of one API; for use in one event loop.

    `ready` returns an encoder that is cached or needs no schema;
    `encoder` also creates those that need the registry.
    """

    def __init__(
        self,
        registry: RegistryClient,
        rules: Rules = V3,
        *,
        clock: Clock | None = None,
        threads: ThreadPoolExecutor | None = None,
    ) -> None:
        self._rules = rules
        self._registry = registry
        self._calls = RegistryCalls(registry, clock=clock, threads=threads)
        self._plain: dict[Format | None, Encoder] = {
            Format.BINARY: BinaryEncoder(),
            Format.JSON: JsonEncoder(),
            Format.STRING: StringEncoder(),
        }
        self._cached: dict[Target, _Cached] = {}
        self._characters = 0

    def ready(self, target: Target) -> Encoder | None:
        """The encoder, if it is available at once."""
        plain = self._plain.get(target.format)
        if plain is not None:
            return plain if target.choice == NO_CHOICE or not self._rules.format_names_schema else None
        cached = self._cached.get(target)
        if cached is not None:
            subject = cached.latest_of
            is_current = subject is None or self._registry.known_latest(subject) is cached.encoder.schema
            return cached.encoder if is_current else None
        if target.format is None or self._rules.may_use_latest or not target.choice.names_none:
            return None
        return SchemaMissing(target.format, is_key=target.is_key)

    async def encoder(self, target: Target) -> Encoder:
        """The encoder, created if it is not cached; raises ProxyError."""
        ready = self.ready(target)
        if ready is not None:
            return ready
        check(target, self._rules)
        created = await self._calls.run(partial(self._create, target), sharing=target)
        self._forget(target)
        self._cached[target] = created
        self._characters += _characters(target)
        while len(self._cached) > _MAX_ENTRIES or self._characters > _MAX_CHARACTERS:
            self._forget(next(iter(self._cached)))  # the oldest
        return created.encoder

    def _create(self, target: Target) -> "_Cached":
        """Find the schema in the registry, or register it; blocks."""
        schema = find_schema(target, self._registry)
        encoder = SchemaEncoder(writer_by(schema, self._registry), self._rules.mismatch_code)
        return _Cached(encoder, target.subject_without_schema() if target.choice.is_latest else None)

    def _forget(self, target: Target) -> None:
        if self._cached.pop(target, None) is not None:
            self._characters -= _characters(target)


class _Cached(msgspec.Struct, frozen=True):
    encoder: Encoder
    latest_of: str | None
    """The subject whose latest schema it uses, and must still be the latest one; None if the request named a schema."""


def _characters(target: Target) -> int:
    return len(target.topic) + len(target.choice.schema or "") + len(target.choice.subject or "")


class SchemaEncoder:
    """Encodes and frames data from its JSON form: Avro's JSON encoding, JSON itself, or Protobuf's; null stays null."""

    def __init__(self, writer: Writer, mismatch_code: int) -> None:
        self.format = Format.of_schema(writer.registered.definition.schema_type)
        self.schema: RegisteredSchema | None = writer.registered
        self._prefix = writer.prefix
        self._encode = writer.codec.encode_json
        self._mismatch_code = mismatch_code

    def encode(self, data: msgspec.Raw) -> bytes | None:
        """The bytes of one key or value."""
        try:
            view = _decode(data)
            return None if view is None else self._prefix + self._encode(view)
        except _ERRORS as error:
            if not bytes(data):
                return None
            reason = str(error)
            if len(reason) > _MAX_REASON:
                # Errors deep inside repeat themselves level by level: the middle can go.
                reason = f"{reason[: _MAX_REASON // 2]} … {reason[-_MAX_REASON // 2 :]}"
            message = f"Conversion of JSON to {self.format} failed: {reason} (in {excerpt(data)})"
            raise ProxyError(self._mismatch_code, message) from None


class SchemaMissing:
    """The encoder for requests that name no schema: null needs none, anything else is refused."""

    schema = None

    def __init__(self, format_: Format, *, is_key: bool) -> None:
        self.format = format_
        self._is_key = is_key

    def encode(self, data: msgspec.Raw) -> bytes | None:
        """None for null; raises ProxyError for anything else."""
        if bytes(data) in (b"", b"null"):
            return None
        if self._is_key:
            raise ProxyError(42201, "Request includes keys but does not include key schema")
        raise ProxyError(42202, "Request includes values but does not include value schema")
