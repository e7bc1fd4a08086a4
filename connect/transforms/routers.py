"""Gives records other topics, by name and time; and the transform that drops all it sees."""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import STRING, Config, Importance, Problem, option
from connect.api.errors import ConfigError, DataError
from connect.api.transform import R, Transform
from connect.transforms.epoch import clock_at
from connect.transforms.java.date_format import DateFormat
from connect.transforms.java.regex import Rename, compile_pattern
from connect.transforms.options import as_given

_MOST_TOPICS: Final = 10_000


class RegexRouterConfig(Config):
    """Options of RegexRouter."""

    regex: str = option(STRING, importance=Importance.HIGH)
    """The pattern (Java's) that must match the whole topic."""
    replacement: str = option(STRING, importance=Importance.HIGH)
    """The new topic; $1 stands for the first group, ${name} for a named one."""

    @override
    def problems(self) -> Iterable[Problem]:
        """A pattern and a replacement that fit."""
        try:
            compile_pattern(self.regex)
        except ConfigError as error:
            yield Problem("regex", str(error))
            return
        try:
            Rename(self.regex, as_given(self, "replacement", default=""))
        except ConfigError as error:
            yield Problem("replacement", str(error))


class RegexRouter(Transform):
    """Gives records another topic when a pattern matches the one they have."""

    config_class = RegexRouterConfig
    aliases = (
        "org.apache.kafka.connect.transforms.RegexRouter",
        "io.confluent.connect.transforms.TopicRegexRouter",
    )

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = RegexRouterConfig.parse(config)
        self._rename = Rename(options.regex, as_given(options, "replacement", default=""))
        self._topics: dict[str, str] = {}

    @override
    def apply(self, record: R) -> R | None:
        topic = self._topics.get(record.topic) or self._renamed(record.topic)
        return record if topic == record.topic else replace(record, topic=topic)

    def _renamed(self, topic: str) -> str:
        if len(self._topics) >= _MOST_TOPICS:
            self._topics.clear()
        renamed = self._rename(topic)
        self._topics[topic] = result = topic if renamed is None else renamed
        return result


class TimestampRouterConfig(Config):
    """Options of TimestampRouter."""

    topic_format: str = option(STRING, default="${topic}-${timestamp}", importance=Importance.HIGH)
    """The new topic; ${topic} stands for the one the record has, ${timestamp} for its time."""
    timestamp_format: str = option(STRING, default="yyyyMMdd", importance=Importance.HIGH)
    """The pattern of the time (Java's SimpleDateFormat), in UTC."""

    @override
    def problems(self) -> Iterable[Problem]:
        """A pattern that is one."""
        try:
            DateFormat(self.timestamp_format, now_ms=0)
        except ValueError as error:
            told = f"Invalid value {self.timestamp_format} for configuration timestamp.format: {error}"
            yield Problem("timestamp.format", told)


class TimestampRouter(Transform):
    """Gives records a topic that tells their time."""

    config_class = TimestampRouterConfig
    aliases = ("org.apache.kafka.connect.transforms.TimestampRouter",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = TimestampRouterConfig.parse(config)
        self._topic_format = options.topic_format
        self._format = DateFormat(as_given(options, "timestamp.format", default="yyyyMMdd"), now_ms=0)

    @override
    def apply(self, record: R) -> R | None:
        if record.timestamp_ms is None:
            raise DataError(f"Timestamp missing on record of topic {record.topic}")
        text = self._format.format(clock_at(record.timestamp_ms))
        topic = self._topic_format.replace("${topic}", record.topic).replace("${timestamp}", text)
        return replace(record, topic=topic)


class Filter(Transform):
    """Drops every record; meant to be used with a predicate."""

    aliases = ("org.apache.kafka.connect.transforms.Filter",)

    @override
    def apply(self, record: R) -> R | None:
        return None
