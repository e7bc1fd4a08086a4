"""Small plugins that do nothing: for tests of what is around connectors."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from typing_extensions import override

from connect.api.config import (
    BOOLEAN,
    INT,
    LIST,
    PASSWORD,
    STRING,
    Config,
    Importance,
    Problem,
    at_least,
    between,
    one_of,
    option,
    optional,
)
from connect.api.converter import Converter, HeaderConverter, RawHeader, SchemaAndValue
from connect.api.data import Schema, Value
from connect.api.errors import ConfigError
from connect.api.record import Record, SinkRecord, SourceRecord
from connect.api.sink import SinkConnector, SinkTask
from connect.api.source import SourceConnector, SourceTask
from connect.api.transform import Predicate, R, Transform
from connect.runtime.configuration.plugins import Plugins

JSON = "org.apache.kafka.connect.json.JsonConverter"
SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


class SinkOptions(Config):
    """Options of the sink."""

    file: str = option(STRING, default="", importance=Importance.HIGH, group="File", display_name="Output file")
    """Where records go."""
    batch_size: int = option(INT, default=10, check=between(1, 100), group="File", aliases=("batch",))
    """How many at once."""
    mode: str = option(STRING, default="append", check=one_of("append", "replace"), recommended=("append",))
    """How."""
    secret: str | None = option(optional(PASSWORD), default=None)
    """Never shown."""
    columns: tuple[str, ...] = option(LIST, default=("a", "b"))
    """Which columns."""


class QuietSinkTask(SinkTask):
    """Drops everything."""

    @override
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Nothing."""


class QuietSinkConnector(SinkConnector):
    """A sink that does nothing."""

    config_class = SinkOptions
    task_class = QuietSinkTask
    aliases = ("com.example.QuietSinkConnector", "net.example.OtherSinkConnector")
    version = "2.5"

    @override
    @classmethod
    def validate(cls, config: Config) -> Iterable[Problem]:
        """A file that is called refused is refused."""
        assert isinstance(config, SinkOptions)
        match config.file:
            case "refused":
                yield Problem("file", f"cannot write {config.file}")
            case "broken":
                raise RuntimeError("a bug")
            case "down":
                raise ConfigError("the other side is down")
            case _:
                pass


class SourceOptions(Config):
    """Options of the source."""

    topic: str = option(STRING)
    """Where records go."""


class QuietSourceTask(SourceTask):
    """Reads nothing."""

    @override
    def poll(self) -> Sequence[SourceRecord]:
        """Nothing."""
        return []


class QuietSourceConnector(SourceConnector):
    """A source that does nothing."""

    config_class = SourceOptions
    task_class = QuietSourceTask


class ExactSourceConnector(QuietSourceConnector):
    """A source that does nothing, exactly once."""

    is_exactly_once = True
    defines_transactions = True


class ConverterOptions(Config):
    """Options of the converter."""

    schemas_enable: bool = option(BOOLEAN, default=True)
    """Whether schemas are written."""


class PlainConverter(Converter):
    """Bytes are text."""

    config_class: ClassVar[type[Config]] = ConverterOptions
    aliases = (JSON,)

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        if config.get("fail") == "true":
            raise ConfigError("this converter fails")

    @override
    def to_connect(self, topic: str, data: bytes | None, headers: Sequence[RawHeader] = ()) -> SchemaAndValue:
        """As it is."""
        return None, data

    @override
    def from_connect(self, topic: str, schema: Schema | None, value: Value) -> bytes | None:
        """As it is."""
        return None


class PlainHeaderConverter(HeaderConverter):
    """Headers are text."""

    aliases = (SIMPLE,)

    @override
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        """As it is."""
        return None, data

    @override
    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Value) -> bytes | None:
        """As it is."""
        return None


class MaskOptions(Config):
    """Options of the transform."""

    fields: tuple[str, ...] = option(LIST)
    """Which fields."""
    times: int = option(INT, default=1, check=at_least(1))
    """How often."""


class MaskValue(Transform):
    """Changes nothing."""

    config_class = MaskOptions
    aliases = ("com.example.Mask$Value",)

    @override
    def apply(self, record: R) -> R | None:
        """As it is."""
        return record


class AlwaysPredicate(Predicate):
    """Matches every record."""

    aliases = ("com.example.Always",)

    @override
    def test(self, record: Record) -> bool:
        """Yes."""
        return True


def quiet_plugins() -> Plugins:
    """All of them, beside what is installed."""
    return Plugins.of(
        connectors=[QuietSourceConnector, ExactSourceConnector, QuietSinkConnector],
        converters=[PlainConverter],
        header_converters=[PlainHeaderConverter],
        transforms=[MaskValue],
        predicates=[AlwaysPredicate],
    )
