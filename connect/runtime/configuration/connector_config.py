"""Options that every connector has, whatever its class."""

import re
from collections.abc import Iterable

from typing_extensions import override

from connect.api.config import (
    BOOLEAN,
    CLASS,
    INT,
    LIST,
    LONG,
    SHORT,
    STRING,
    Check,
    Config,
    Importance,
    Kind,
    Problem,
    Width,
    at_least,
    not_empty,
    one_of,
    option,
    optional,
)

_COMMON, _TRANSFORMS, _PREDICATES, _ERRORS = "Common", "Transforms", "Predicates", "Error Handling"
_FACTOR = Check(accepts=lambda value: value == -1 or value >= 1, allowed="-1 (the cluster's default) or at least 1")
_WORD = Kind(name=STRING.name, wire=STRING.wire, read=str.lower, write=str, allowed="a word")
"""Kafka Connect takes these words in letters of any case."""
_UNIQUE = Check(accepts=lambda names: len(set(names)) == len(names), allowed="names that differ")


class ConnectorConfig(Config):
    """Options of sources and sinks alike."""

    name: str = option(
        STRING,
        check=not_empty(),
        importance=Importance.HIGH,
        group=_COMMON,
        width=Width.MEDIUM,
        display_name="Connector name",
    )
    """Globally unique name to use for this connector."""
    connector_class: str = option(
        STRING, importance=Importance.HIGH, group=_COMMON, width=Width.LONG, display_name="Connector class"
    )
    """Name of the connector's class: in full, its last part, or that without Connector."""
    tasks_max: int = option(
        INT,
        default=1,
        check=at_least(1),
        importance=Importance.HIGH,
        group=_COMMON,
        display_name="Tasks max",
        width=Width.SHORT,
    )
    """Most tasks to use for this connector."""
    tasks_max_enforce: bool = option(
        BOOLEAN,
        default=True,
        importance=Importance.LOW,
        group=_COMMON,
        display_name="Enforce tasks max",
        width=Width.SHORT,
    )
    """Whether a connector that wants more tasks than that fails."""
    key_converter: str | None = option(
        optional(CLASS),
        default=None,
        importance=Importance.LOW,
        group=_COMMON,
        display_name="Key converter class",
        width=Width.SHORT,
    )
    """How keys of records are read and written; not set: as the worker says."""
    value_converter: str | None = option(
        optional(CLASS),
        default=None,
        importance=Importance.LOW,
        group=_COMMON,
        display_name="Value converter class",
        width=Width.SHORT,
    )
    """How values of records are read and written; not set: as the worker says."""
    header_converter: str | None = option(
        optional(CLASS),
        default=None,
        importance=Importance.LOW,
        group=_COMMON,
        display_name="Header converter class",
        width=Width.SHORT,
    )
    """How headers of records are read and written; not set: as the worker says."""
    transforms: tuple[str, ...] = option(
        LIST,
        default=(),
        check=_UNIQUE,
        importance=Importance.LOW,
        group=_TRANSFORMS,
        width=Width.LONG,
        display_name="Transforms",
    )
    """Aliases of the transforms that records pass, in this order."""
    predicates: tuple[str, ...] = option(
        LIST,
        default=(),
        check=_UNIQUE,
        importance=Importance.LOW,
        group=_PREDICATES,
        width=Width.LONG,
        display_name="Predicates",
    )
    """Aliases of the predicates that transforms use."""
    config_action_reload: str = option(
        STRING,
        default="restart",
        check=one_of("none", "restart"),
        importance=Importance.LOW,
        group=_COMMON,
        display_name="Reload Action",
        width=Width.MEDIUM,
    )
    """What to do when a value that a provider gave has changed."""

    errors_retry_timeout: int = option(
        LONG, default=0, check=at_least(-1), group=_ERRORS, display_name="Retry Timeout for Errors", width=Width.MEDIUM
    )
    """How long (ms) a failed conversion or transform is tried again, when that may help; -1 for ever, 0 not at all."""
    errors_retry_delay_max_ms: int = option(
        LONG,
        default=60_000,
        check=at_least(1),
        group=_ERRORS,
        display_name="Maximum Delay Between Retries for Errors",
        width=Width.MEDIUM,
    )
    """Longest pause between two such attempts."""
    errors_tolerance: str = option(
        STRING,
        default="none",
        check=one_of("none", "all"),
        group=_ERRORS,
        display_name="Error Tolerance",
        width=Width.SHORT,
    )
    """none: the first bad record stops the task. all: bad records are skipped."""
    errors_log_enable: bool = option(
        BOOLEAN, default=False, group=_ERRORS, display_name="Log Errors", width=Width.SHORT
    )
    """Whether each failure is logged, those that are tolerated too."""
    errors_log_include_messages: bool = option(
        BOOLEAN, default=False, group=_ERRORS, display_name="Log Error Details", width=Width.SHORT
    )
    """Whether the log tells which record failed."""
    errors_deadletterqueue_topic_name: str = option(
        STRING, default="", group=_ERRORS, display_name="Dead Letter Queue Topic Name", width=Width.MEDIUM
    )
    """The topic that bad records go to, as they were read; not set: there is none."""
    errors_deadletterqueue_topic_replication_factor: int = option(
        SHORT,
        default=-1,
        check=_FACTOR,
        group=_ERRORS,
        display_name="Dead Letter Queue Topic Replication Factor",
        width=Width.MEDIUM,
    )
    """How many copies of that topic, when the task creates it."""
    errors_deadletterqueue_topic_partitions: int = option(
        INT,
        default=1,
        check=at_least(1),
        group=_ERRORS,
        display_name="Dead Letter Queue Topic Partitions",
        width=Width.MEDIUM,
    )
    """How many partitions it gets, when the task creates it."""
    errors_deadletterqueue_context_headers_enable: bool = option(
        BOOLEAN, default=False, group=_ERRORS, display_name="Enable Error Context Headers", width=Width.MEDIUM
    )
    """Whether dead letters tell in headers (`__connect.errors.…`) where they come from and why they failed."""
    errors_restart_max: int = option(
        INT, default=0, check=at_least(-1), group=_ERRORS, display_name="Restarts of Failed Tasks", width=Width.SHORT
    )
    """How often in a row a failed connector or task is started again by itself; -1 without end, 0 never."""
    errors_restart_delay_ms: int = option(
        LONG,
        default=1_000,
        check=at_least(1),
        group=_ERRORS,
        display_name="Delay Before the First Restart",
        width=Width.MEDIUM,
    )
    """How long to wait before the first such start; twice as long before each further one."""
    errors_restart_delay_max_ms: int = option(
        LONG,
        default=60_000,
        check=at_least(1),
        group=_ERRORS,
        display_name="Maximum Delay Between Restarts",
        width=Width.MEDIUM,
    )
    """Longest such wait."""
    errors_restart_reset_ms: int = option(
        LONG,
        default=600_000,
        check=at_least(1),
        group=_ERRORS,
        display_name="Time Until Restarts Are Forgotten",
        width=Width.MEDIUM,
    )
    """What ran this long without failing has all its restarts again."""


class SourceConnectorConfig(ConnectorConfig):
    """Options of every source."""

    topic_creation_groups: tuple[str, ...] = option(
        LIST,
        default=(),
        check=_UNIQUE,
        importance=Importance.LOW,
        group="Topic Creation",
        display_name="Topic Creation Groups",
        width=Width.LONG,
    )
    """Names of groups of topics that are created in their own way; `default` is always there, and last."""
    exactly_once_support: str = option(
        _WORD,
        default="requested",
        check=one_of("requested", "required"),
        group="Exactly Once Support",
        display_name="Exactly once support",
        width=Width.SHORT,
    )
    """required: records and offsets are written in transactions, or the configuration is refused."""
    transaction_boundary: str = option(
        _WORD,
        default="poll",
        check=one_of("poll", "interval", "connector"),
        group="Exactly Once Support",
        display_name="Transaction Boundary",
        width=Width.SHORT,
    )
    """What is written in one transaction: what one poll brought, what came in an interval, or as the source says."""
    transaction_boundary_interval_ms: int | None = option(
        optional(LONG),
        default=None,
        check=at_least(1),
        importance=Importance.LOW,
        group="Exactly Once Support",
        display_name="Transaction boundary interval",
        width=Width.SHORT,
    )
    """That interval; not set: the worker's offset.flush.interval.ms."""
    offsets_storage_topic: str | None = option(
        optional(STRING),
        default=None,
        check=not_empty(),
        importance=Importance.LOW,
        group="offsets.topic",
        display_name="Offsets topic",
        width=Width.LONG,
    )
    """A topic of its own for this connector's offsets; not set: the worker's."""

    @override
    def problems(self) -> Iterable[Problem]:
        """Topics that are created need numbers."""
        yield from super().problems()
        if "default" in self.topic_creation_groups:
            yield Problem(
                "topic.creation.groups",
                "Invalid value default for configuration topic.creation.groups: "
                "the group default is always there and not listed",
            )


class SinkConnectorConfig(ConnectorConfig):
    """Options of every sink."""

    topics: tuple[str, ...] = option(
        LIST, default=(), importance=Importance.HIGH, group=_COMMON, width=Width.LONG, display_name="Topics"
    )
    """The topics to consume, separated by commas."""
    topics_regex: str = option(
        STRING, default="", importance=Importance.HIGH, group=_COMMON, width=Width.LONG, display_name="Topics regex"
    )
    """A regular expression; topics whose whole name it matches are consumed."""
    errors_put_bisect_enable: bool = option(
        BOOLEAN, default=True, group=_ERRORS, display_name="Find Bad Records in Batches", width=Width.SHORT
    )
    """Whether a batch that the other side refuses is split until the bad records are found (errors.tolerance=all)."""

    @override
    def problems(self) -> Iterable[Problem]:
        """Exactly one way to name topics, and no circle through the dead letters."""
        yield from super().problems()
        if bool(self.topics) == bool(self.topics_regex):
            told = (
                "Must configure one of topics or topics.regex"
                if not self.topics
                else ("topics and topics.regex are mutually exclusive options, but both are set.")
            )
            yield Problem("topics" if not self.topics else "topics.regex", told)
        if self.topics_regex and (fault := _pattern_fault(self.topics_regex)):
            yield Problem("topics.regex", f"Invalid value {self.topics_regex} for configuration topics.regex: {fault}")
        elif (dead := self.errors_deadletterqueue_topic_name.strip()) and self._reads(dead):
            yield Problem("errors.deadletterqueue.topic.name", f"The DLQ topic '{dead}' may not be {self._circle}")

    @property
    def _circle(self) -> str:
        """How a topic of dead letters is among those that are read, in Kafka Connect's words."""
        if self.topics:
            return f"included in the list of topics ('topics=[{', '.join(self.topics)}]') consumed by the connector"
        return f"matched by the regex for the topics ('topics.regex={self.topics_regex}') consumed by the connector"

    def _reads(self, topic: str) -> bool:
        return topic in self.topics or bool(self.topics_regex and re.fullmatch(self.topics_regex, topic))


def _pattern_fault(pattern: str) -> str | None:
    try:
        re.compile(pattern)
    except re.error as error:
        return f"Invalid regex: {error}"
    return None
