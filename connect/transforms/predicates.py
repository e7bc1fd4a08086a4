"""Predicates: which records a transform applies to."""

from collections.abc import Iterable, Mapping

from typing_extensions import override

from connect.api.config import STRING, Config, Problem, not_empty, option
from connect.api.record import Record
from connect.api.transform import Predicate
from connect.transforms.java.regex import compile_pattern
from connect.transforms.options import problems_of


class HasHeaderKeyConfig(Config):
    """Options of HasHeaderKey."""

    name: str = option(STRING, check=not_empty())
    """The name of the header."""


class HasHeaderKey(Predicate):
    """True for records with at least one header of a name."""

    config_class = HasHeaderKeyConfig
    config: HasHeaderKeyConfig
    aliases = ("org.apache.kafka.connect.transforms.predicates.HasHeaderKey",)

    @override
    def test(self, record: Record) -> bool:
        name = self.config.name
        return any(header.key == name for header in record.headers)


class RecordIsTombstone(Predicate):
    """True for records whose value is null."""

    aliases = ("org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",)

    @override
    def test(self, record: Record) -> bool:
        return record.value is None


class TopicNameMatchesConfig(Config):
    """Options of TopicNameMatches."""

    pattern: str = option(STRING, check=not_empty())
    """The regular expression (Java's) that must match the whole topic."""

    @override
    def problems(self) -> Iterable[Problem]:
        """An invalid pattern."""
        return problems_of("pattern", lambda: compile_pattern(self.pattern, "pattern"))


class TopicNameMatches(Predicate):
    """True for records of topics whose whole name a pattern matches."""

    config_class = TopicNameMatchesConfig
    config: TopicNameMatchesConfig
    aliases = ("org.apache.kafka.connect.transforms.predicates.TopicNameMatches",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._pattern = compile_pattern(self.config.pattern, "pattern")

    @override
    def test(self, record: Record) -> bool:
        return self._pattern.fullmatch(record.topic) is not None
