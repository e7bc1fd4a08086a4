"""Routers by topic name and by time; and Filter, which drops every record it gets."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import STRING, Config, Importance, Problem, option
from connect.api.errors import DataError
from connect.api.transform import R, Transform
from connect.transforms.epoch import clock_at
from connect.transforms.java.date_format import DateFormat
from connect.transforms.java.regex import Rename, compile_pattern
from connect.transforms.options import problems_of, raw_text
from connect.transforms.sides import Memo


class RegexRouterConfig(Config):
    """Options of RegexRouter."""

    regex: str = option(STRING, importance=Importance.HIGH)
    """The pattern (Java's) that must match the whole topic."""
    replacement: str = option(STRING, importance=Importance.HIGH)
    """The new topic; $1 stands for the first group, ${name} for a named one."""

    @override
    def problems(self) -> Iterable[Problem]:
        """An invalid pattern or replacement."""
        if pattern_problems := list(problems_of("regex", lambda: compile_pattern(self.regex))):
            return pattern_problems
        return problems_of("replacement", lambda: self.rename)

    @property
    def rename(self) -> Rename:
        """The new name of a topic, given its name."""
        return Rename(self.regex, raw_text(self, "replacement", default=""))


class RegexRouter(Transform):
    """Changes the topic of records if a pattern matches it."""

    config_class = RegexRouterConfig
    config: RegexRouterConfig
    aliases = (
        "org.apache.kafka.connect.transforms.RegexRouter",
        "io.confluent.connect.transforms.TopicRegexRouter",
    )

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._topics = Memo(self.config.rename, limit=10_000)

    @override
    def apply(self, record: R) -> R | None:
        topic = self._topics[record.topic]
        return record if topic is None or topic == record.topic else replace(record, topic=topic)


class TimestampRouterConfig(Config):
    """Options of TimestampRouter."""

    topic_format: str = option(STRING, default="${topic}-${timestamp}", importance=Importance.HIGH)
    """The new topic; ${topic} stands for the one the record has, ${timestamp} for its time."""
    timestamp_format: str = option(STRING, default="yyyyMMdd", importance=Importance.HIGH)
    """The pattern of the time (Java's SimpleDateFormat), in UTC."""

    @override
    def problems(self) -> Iterable[Problem]:
        """An invalid pattern."""
        try:
            DateFormat(self.timestamp_format, now_ms=0)
        except ValueError as error:
            message = f"Invalid value {self.timestamp_format} for configuration timestamp.format: {error}"
            yield Problem("timestamp.format", message)


class TimestampRouter(Transform):
    """Changes the topic of records to one that contains their time."""

    config_class = TimestampRouterConfig
    config: TimestampRouterConfig
    aliases = ("org.apache.kafka.connect.transforms.TimestampRouter",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._format = DateFormat(raw_text(self.config, "timestamp.format", default="yyyyMMdd"), now_ms=0)

    @override
    def apply(self, record: R) -> R | None:
        if record.timestamp_ms is None:
            raise DataError(f"Timestamp missing on record of topic {record.topic}")
        text = self._format.format(clock_at(record.timestamp_ms))
        topic = self.config.topic_format.replace("${topic}", record.topic).replace("${timestamp}", text)
        return replace(record, topic=topic)


class Filter(Transform):
    """Drops every record; meant to be used with a predicate."""

    aliases = ("org.apache.kafka.connect.transforms.Filter",)

    @override
    def apply(self, record: R) -> R | None:
        return None
