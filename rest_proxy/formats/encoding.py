"""From the JSON of requests to the bytes of records."""

from functools import partial
from typing import Protocol

import msgspec

from core_broker.service.clock import Clock
from rest_proxy.formats.binary import BinaryEncoder
from rest_proxy.formats.by_schema import SchemaEncoder, SchemaMissing
from rest_proxy.formats.formats import NO_CHOICE, Format, SchemaChoice
from rest_proxy.formats.json_text import JsonEncoder
from rest_proxy.formats.registry_calls import RegistryCalls
from rest_proxy.formats.rules import V3, Rules
from rest_proxy.formats.schema_choices import Target, check, registered
from rest_proxy.formats.string import StringEncoder
from schema_registry.client.models import RegisteredSchema
from schema_registry.client.registry_client import RegistryClient
from schema_registry.serdes.serializer import writer_by

_MAX_ENTRIES = 1_000
_MAX_CHARACTERS = 4 << 20
"""Of the schemas' texts that encoders are remembered by: texts are whatever requests say, and what is made of them is
many times as large."""


class Encoder(Protocol):
    """Writes keys, or values, of one format and schema."""

    @property
    def format(self) -> Format:
        """The format, also where a request left it to the schema to tell."""

    @property
    def schema(self) -> RegisteredSchema | None:
        """The schema that data is written by, for answers; None where there is none."""

    def encode(self, data: msgspec.Raw) -> bytes | None:
        """The bytes for the JSON of one key or value; raises ProxyError for this one. None for null and for nothing."""


class Encoders:
    """Encoders of one API, remembered; to be used in one event loop.

    A format of None leaves it to the schema to tell (API v3). Both methods know the same encoders: `ready` those that
    can be had at once, `encoder` all of them.
    """

    def __init__(self, registry: RegistryClient, rules: Rules = V3, *, clock: Clock | None = None) -> None:
        self._rules = rules
        self._registry = registry
        self._calls = RegistryCalls(registry, clock=clock)
        self._plain: dict[Format | None, Encoder] = {
            Format.BINARY: BinaryEncoder(),
            Format.JSON: JsonEncoder(),
            Format.STRING: StringEncoder(),
        }
        self._made: dict[_Key, _Made] = {}
        self._characters = 0

    def ready(
        self,
        format: Format | None,  # noqa: A002 - the API's word
        topic: str,
        *,
        is_key: bool,
        choice: SchemaChoice = NO_CHOICE,
    ) -> Encoder | None:
        """The encoder, if it is known; never blocks."""
        plain = self._plain.get(format)
        if plain is not None:
            return plain if choice == NO_CHOICE or not self._rules.format_names_schema else None
        made = self._made.get((format, topic, is_key, choice))
        if made is not None:
            is_fixed = made.latest_of is None or self._registry.known_latest(made.latest_of) is made.encoder.schema
            return made.encoder if is_fixed else None
        if format is None or self._rules.may_use_latest or not choice.names_none:
            return None
        return SchemaMissing(format, is_key=is_key)

    async def encoder(
        self,
        format: Format | None,  # noqa: A002 - the API's word
        topic: str,
        *,
        is_key: bool,
        choice: SchemaChoice = NO_CHOICE,
    ) -> Encoder:
        """The encoder, made if it is not known; raises ProxyError."""
        ready = self.ready(format, topic, is_key=is_key, choice=choice)
        if ready is not None:
            return ready
        target = Target(format=format, topic=topic, is_key=is_key, choice=choice)
        check(target, self._rules)
        made = await self._calls.run(partial(self._made_for, target), sharing=target)
        self._remember((format, topic, is_key, choice), made)
        return made.encoder

    def _made_for(self, target: Target) -> "_Made":
        schema = registered(target, self._registry)
        encoder = SchemaEncoder(writer_by(schema, self._registry), self._rules.unfit_code)
        return _Made(encoder, target.subject_without_schema() if target.choice.is_latest else None)

    def _remember(self, key: "_Key", made: "_Made") -> None:
        """Bounded by number and by size; what came first goes first."""
        self._forget(key)
        self._made[key] = made
        self._characters += _characters(key)
        while len(self._made) > _MAX_ENTRIES or self._characters > _MAX_CHARACTERS:
            self._forget(next(iter(self._made)))

    def _forget(self, key: "_Key") -> None:
        if self._made.pop(key, None) is not None:
            self._characters -= _characters(key)


class _Made(msgspec.Struct, frozen=True):
    encoder: Encoder
    latest_of: str | None
    """The subject whose latest schema this one must still be; None if it stays as it is."""


_Key = tuple[Format | None, str, bool, SchemaChoice]


def _characters(key: _Key) -> int:
    _, topic, _, choice = key
    return len(topic) + len(choice.schema or "") + len(choice.subject or "")
