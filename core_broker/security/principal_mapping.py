"""From the subject of a certificate to the name of a principal: `ssl.principal.mapping.rules`, as in Kafka.

    RULE:^CN=([^,]+),OU=Apps,.*$/$1/L,DEFAULT

A rule applies if its pattern matches the whole subject; the first one that applies wins.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

import msgspec
import re2

SUBJECT_LENGTH_MAX: Final = 4096
"""Patterns without a linear-time equivalent may take much longer for long subjects."""

_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)\/((?:\\.|[^\\/])*)\/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER: Final = re.compile(_RULE)
_REPLACEMENT_PART: Final = re.compile(
    r"\\(?P<literal>.)|\$(?P<number>\d+)|\$\{(?P<name>\w+)\}|(?P<bad>[\\$])", re.DOTALL
)
_JAVA_GROUP: Final = re.compile(r"\(\?<(?=[A-Za-z])")


class NoRuleApplies(Exception):
    """A certificate has no principal under the rules; the connection must be closed."""


class _Match(Protocol):
    def span(self) -> tuple[int, int]: ...
    def group(self, group: int, /) -> str | None: ...


class _Pattern(Protocol):
    @property
    def groups(self) -> int: ...
    @property
    def groupindex(self) -> Mapping[str, int]: ...
    def fullmatch(self, text: str, /) -> _Match | None: ...
    def finditer(self, text: str, /) -> Iterator[_Match]: ...


class _Rule(msgspec.Struct, frozen=True):
    pattern: _Pattern
    replacement: tuple[str | int, ...]
    """Literal text, and the numbers of groups."""
    case: str
    """L, U or empty."""

    def apply(self, subject: str) -> str | None:
        """The name, None if the rule does not apply."""
        if self.pattern.fullmatch(subject) is None:
            return None
        parts: list[str] = []
        end = 0
        # Kafka replaces every match, which may be more than the one of the whole subject: an empty one at its end.
        for match in self.pattern.finditer(subject):
            start, stop = match.span()
            parts += subject[end:start], self._expanded(match)
            end = stop
        name = "".join((*parts, subject[end:]))
        if self.case:
            return name.lower() if self.case == "L" else name.upper()
        return name

    def _expanded(self, match: _Match) -> str:
        return "".join(part if isinstance(part, str) else match.group(part) or "" for part in self.replacement)


class PrincipalMapping:
    """The rules of one listener, compiled."""

    def __init__(self, text: str) -> None:
        """Raises ValueError if a rule cannot be read."""
        self._rules = tuple(_parse(text))

    def name_of(self, subject: str) -> str:
        """The name of the principal; raises NoRuleApplies."""
        if len(subject) > SUBJECT_LENGTH_MAX:
            raise NoRuleApplies(f"the subject of the certificate has more than {SUBJECT_LENGTH_MAX} characters")
        for rule in self._rules:
            name = subject if rule is None else rule.apply(subject)
            if name is not None:
                return name
        raise NoRuleApplies(f"no rule of ssl.principal.mapping.rules applies to {subject!r}")


def _parse(text: str) -> Iterator[_Rule | None]:
    """The rules in order; None is DEFAULT."""
    for found in _SPLITTER.finditer(text.strip()):
        rule = found[1]
        match = _PARSER.match(rule)
        if match is None or match.end() != len(rule):
            raise ValueError(f"cannot read the rule {rule!r}; rules are DEFAULT or RULE:pattern/replacement/[LU]")
        if match[1] is not None:
            yield None
        elif match[2] is not None:
            pattern = _compile(match[2])
            yield _Rule(pattern, tuple(_parse_replacement(match[3], pattern)), match[4])


def _compile(pattern: str) -> _Pattern:
    """Compile a pattern of Java; in linear time where that is possible."""
    pattern = _JAVA_GROUP.sub("(?P<", pattern)
    options = re2.Options()
    options.log_errors = False
    try:
        linear: _Pattern = re2.compile(pattern, options)
    except re2.error:
        pass
    else:
        return linear
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"cannot read the pattern {pattern!r}: {error}") from None


def _parse_replacement(text: str, pattern: _Pattern) -> Iterator[str | int]:
    end = 0
    for match in _REPLACEMENT_PART.finditer(text):
        yield text[end : match.start()]
        end = match.end()
        if match["literal"] is not None:
            yield match["literal"]
        elif match["number"] is not None:
            yield from _group_reference(match["number"], pattern.groups)
        elif match["name"] is not None and match["name"] in pattern.groupindex:
            yield pattern.groupindex[match["name"]]
        else:
            raise ValueError(
                f"cannot read the replacement {text!r}: a literal $ or backslash needs a backslash before it"
            )
    yield text[end:]


def _group_reference(digits: str, groups: int) -> Iterator[str | int]:
    """As many digits as make the number of a group; without any they are literal."""
    used = len(digits)
    while used > 1 and int(digits[:used]) > groups:
        used -= 1
    if int(digits[:used]) > groups:
        yield f"${digits}"
    else:
        yield int(digits[:used])
        yield digits[used:]
