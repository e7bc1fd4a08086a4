"""From the bytes of records to the JSON of responses."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec

from core_broker.client.records import IncomingRecord
from core_broker.service.clock import SystemClock
from rest_proxy.errors import ProxyError
from rest_proxy.formats.binary import to_base64
from rest_proxy.formats.formats import Format
from rest_proxy.formats.json_text import check_json
from rest_proxy.formats.registry_calls import RegistryCalls
from schema_registry.client.cache import BoundedCache
from schema_registry.client.errors import ClientError, RegistryUnreachable
from schema_registry.client.registry_client import RegistryClient
from schema_registry.serdes.deserializer import Deserializer, Reader
from schema_registry.serdes.errors import NotFramed, SerdeError
from schema_registry.serdes.framing import header_of, read_frame

_UNREADABLE = 42207
_MAX_CACHED = 1_000
_MAX_FETCHED = 100
"""Most schemas fetched for one response: in data that only looks framed, any bytes pass for the id of a schema."""
_ERRORS = (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError)

SchemaName = int | str
"""An id, or a guid."""


class Decoder:
    """Decodes keys and values of one format; shared by all consumers in one event loop, and with it the schemas.

    `prepare` must see the records first: it fetches their schemas, so that `key` and `value` do no I/O.
    """

    def __init__(
        self,
        format: Format,  # noqa: A002 - the API's word
        registry: RegistryClient,
        *,
        threads: ThreadPoolExecutor | None = None,
    ) -> None:
        self._format = format
        self._calls = RegistryCalls(registry, threads=threads)
        self._deserializer = Deserializer(registry)
        self._readers: BoundedCache[SchemaName, Reader] = BoundedCache(_MAX_CACHED, clock=SystemClock())
        self._failures: BoundedCache[SchemaName, str] = BoundedCache(_MAX_CACHED, clock=SystemClock())

    async def prepare(self, records: Sequence[IncomingRecord]) -> None:
        """Fetch the schemas of these records; raises ProxyError if the registry does not answer."""
        if self._format.has_schema:
            unknown = tuple(name for name in _schema_names(records) if self._readers.get(name) is None)[:_MAX_FETCHED]
            if unknown:
                await self._calls.run(partial(self._fetch, unknown), sharing=unknown)

    def key(self, record: IncomingRecord) -> object:
        """The key, as an object that msgspec encodes as JSON; raises ProxyError for this record."""
        data = record.key
        return None if data is None else self._decode(record, data, is_key=True)

    def key_or_base64(self, record: IncomingRecord) -> object:
        """The key, or its bytes in base64 if it has another format: keys of values with schemas are often text."""
        data = record.key
        try:
            return None if data is None else self._read(record, data, is_key=True)
        except (NotFramed, *_ERRORS):
            return to_base64(data or b"")
        except SerdeError:
            return self.key(record)  # fails again, and turns the reason into a ProxyError

    def value(self, record: IncomingRecord) -> object:
        """The value, as an object that msgspec encodes as JSON; raises ProxyError for this record."""
        data = record.value
        return None if data is None else self._decode(record, data, is_key=False)

    def format_by(self, schema_id: int) -> Format:
        """The format of data with this schema, which may differ from the requested one."""
        reader = self._readers.get(schema_id)
        return self._format if reader is None else Format.of_schema(reader.registered.definition.schema_type)

    def _decode(self, record: IncomingRecord, data: bytes, *, is_key: bool) -> object:
        try:
            return self._read(record, data, is_key=is_key)
        except _ERRORS as error:
            reason = f"it is not {'text' if self._format is Format.STRING else 'JSON'} in UTF-8: {error}"
        except SerdeError as error:
            reason = str(error)
        where = f"{record.topic}, partition {record.partition}, offset {record.offset}"
        part = "key" if is_key else "value"
        # Karapace's wording.
        cause = f"{part} deserialization error for format {self._format}: {reason}"
        raise ProxyError(_UNREADABLE, f"The {part} of {where} cannot be read: {cause}")

    def _read(self, record: IncomingRecord, data: bytes, *, is_key: bool) -> object:
        match self._format:
            case Format.BINARY:
                return to_base64(data)
            case Format.JSON:
                return check_json(data)
            case Format.STRING:
                return data.decode()
            case Format.AVRO | Format.JSONSCHEMA | Format.PROTOBUF:
                return self._read_by_schema(record, data, is_key=is_key)

    def _read_by_schema(self, record: IncomingRecord, data: bytes, *, is_key: bool) -> object:
        frame = read_frame(data, header_of(record.headers, is_key=is_key))
        reader = self._readers.get(frame.schema)
        if reader is None:
            raise SerdeError(self._failures.get(frame.schema) or f"its schema {frame.schema} was not fetched")
        # The schema determines the format, whichever of the three was requested: a topic may hold records of several.
        is_json = reader.registered.definition.schema_type == Format.JSONSCHEMA.schema_type
        codec, start = reader.codec(frame)
        return check_json(data[start:]) if is_json else codec.decode_json(data, start)

    def _fetch(self, names: Iterable[SchemaName]) -> None:
        """Create readers for these schemas; one that cannot be fetched is an error of the records that need it."""
        for name in names:
            try:
                self._readers.put(name, self._deserializer.reader(name))
            except RegistryUnreachable:
                raise
            except (SerdeError, ClientError) as error:
                self._failures.put(name, str(error))


def _schema_names(records: Iterable[IncomingRecord]) -> Iterable[SchemaName]:
    """The schemas of records, each once."""
    names: dict[SchemaName, None] = {}
    for record in records:
        for data, is_key in ((record.key, True), (record.value, False)):
            if data is not None:
                try:
                    names[read_frame(data, header_of(record.headers, is_key=is_key)).schema] = None
                except NotFramed:
                    pass
    return names
