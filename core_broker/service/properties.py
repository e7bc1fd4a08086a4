"""Sources of settings: a properties file, the environment, and `--set key=value`; the last one wins."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from core_broker.service.settings import Problem, SettingsError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY = re.compile(r"((?:\\.|[^\s:=\\])*)\s*[:=]?\s*(.*)", re.DOTALL)

# Variables with the prefix that are not settings: those of Kafka's own scripts and images, and the service links that
# Kubernetes sets in every pod next to a service named "kafka".
_NOT_SETTINGS = re.compile(
    r"(HOME|VERSION|OPTS|DEBUG|USER|GROUP|MODE|HEAP_OPTS|GC_LOG_OPTS|JMX_.*|JVM_.*|LOG4J_.*|LOG_DIR_OPTS|TOOLS_.*"
    r"|SERVICE_HOST|SERVICE_PORT.*|PORT|PORT_\d+_.*)"
)
# The REST proxy's prefix begins with the broker's.
_OTHER_PREFIXES = {"KAFKA_": ("KAFKA_REST_",)}


def gather(
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    prefix: str = "KAFKA_",
    assignments: Iterable[str] = (),
) -> dict[str, str]:
    """Settings as text from all sources: the file, then the environment, then the command line."""
    values = read_file(file) if file else {}
    values.update(from_environment(environment or {}, prefix))
    values.update(from_assignments(assignments))
    return values


def read_file(path: Path) -> dict[str, str]:
    """Read a Java properties file such as Kafka's."""
    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError([Problem(key="--config", value=str(path), reason=f"cannot be read: {error}")]) from error


def parse_properties(text: str) -> dict[str, str]:
    """Parse the text of a properties file, including comments, continued lines and escapes."""
    values = {}
    for line in _logical_lines(text):
        match = _KEY.fullmatch(line)
        if match and match[1]:
            values[_unescape(match[1])] = _unescape(match[2]).rstrip()
    return values


def from_environment(environment: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Settings from variables such as KAFKA_LOG_SEGMENT_BYTES: `_` is a dot, `__` a dash, `___` an underscore."""
    return {
        _key_of(name.removeprefix(prefix)): value
        for name, value in environment.items()
        if name.startswith(prefix)
        and not name.startswith(_OTHER_PREFIXES.get(prefix, ()))
        and not _NOT_SETTINGS.fullmatch(name.removeprefix(prefix))
    }


def from_assignments(assignments: Iterable[str]) -> dict[str, str]:
    """Settings from `key=value` arguments."""
    values = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise SettingsError([Problem(key="--set", value=assignment, reason="must look like key=value")])
        values[key.strip()] = value.strip()
    return values


def _key_of(variable: str) -> str:
    separators = {"_": ".", "__": "-", "___": "_"}
    return re.sub(r"_{1,3}", lambda run: separators[run[0]], variable.lower())


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for line in text.splitlines():
        stripped = line.lstrip()
        if not pending and (not stripped or stripped[0] in "#!"):
            continue
        pending += stripped
        if (len(pending) - len(pending.rstrip("\\"))) % 2:
            pending = pending[:-1]
            continue
        yield pending
        pending = ""
    if pending:
        yield pending


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", replace, text)
