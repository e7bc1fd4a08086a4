"""Keeps or drops records by a condition on their key or value, as JSON paths tell it (Confluent's Filter)."""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

from typing_extensions import override

from connect.api.config import STRING, Config, Importance, Problem, not_empty, one_of, option
from connect.api.errors import ConfigError, DataError
from connect.api.transform import R, Transform
from connect.transforms.expressions import Expression

_CONDITION: Final = re.compile(r"\$\[\?\s*\((?P<condition>.*)\)\s*\]\s*", re.DOTALL)
_FIELD: Final = re.compile(r"\$(?P<path>(?:\.[A-Za-z_]\w*|\['[^']+'\])+)\s*", re.ASCII)
_TOKEN: Final = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?P<like>@[.\w\[\]']+)\s*=~\s*/(?P<regex>(?:\\.|[^/\\])*)/|(?P<at>@)""",
    re.DOTALL,
)


class ConditionFilterConfig(Config):
    """Options of a filter by a JSON path."""

    filter_condition: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """A path with a condition, such as $[?(@.status == 'open' && @.amount > 5)], or to a field that must be there:
    $.a.b."""
    filter_type: str = option(STRING, check=one_of("include", "exclude"), importance=Importance.HIGH)
    """Whether records that meet the condition are kept or dropped."""
    missing_or_null_behavior: str = option(STRING, default="fail", check=one_of("fail", "include", "exclude"))
    """What to do with records whose key or value is null: fail, keep or drop."""

    @override
    def problems(self) -> Iterable[Problem]:
        """A condition that can be understood."""
        try:
            _expression(self.filter_condition, "value")
        except ConfigError as error:
            yield Problem("filter.condition", str(error))


class ConditionFilter(Transform):
    """Keeps or drops records by a condition on their value."""

    config_class = ConditionFilterConfig
    side: ClassVar[str] = "value"

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = ConditionFilterConfig.parse(config)
        self._condition = _expression(options.filter_condition, self.side)
        self._keeps = options.filter_type == "include"
        self._nulls = options.missing_or_null_behavior

    @override
    def apply(self, record: R) -> R | None:
        if (record.key if self.side == "key" else record.value) is None:
            if self._nulls == "fail":
                raise DataError(f"the {self.side} of a record of topic {record.topic} is null")
            return record if self._nulls == "include" else None
        return record if self._condition.holds(record) is self._keeps else None


class ConditionFilterKey(ConditionFilter):
    """Keeps or drops records by a condition on their key."""

    side = "key"
    aliases = ("io.confluent.connect.transforms.Filter$Key",)


class ConditionFilterValue(ConditionFilter):
    """Keeps or drops records by a condition on their value."""

    aliases = ("io.confluent.connect.transforms.Filter$Value",)


def _expression(path: str, side: str) -> Expression:
    """The condition in our own language of expressions."""
    if found := _FIELD.fullmatch(path):
        return Expression(f"{side}{found['path']} != null", key="filter.condition")
    found = _CONDITION.fullmatch(path)
    if found is None:
        raise ConfigError(
            f"Invalid value {path} for configuration filter.condition: must be a path to a field ($.a.b) or a"
            " condition on fields ($[?(@.a == 'b')])"
        )
    return Expression(_TOKEN.sub(lambda token: _translated(token, side), found["condition"]), key="filter.condition")


def _translated(token: re.Match[str], side: str) -> str:
    if token["like"] is not None:
        return f"matches({token['like'].replace('@', side)}, {token['regex']!r})"
    return side if token["at"] else token[0]
