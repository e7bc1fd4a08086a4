"""Writes the skeleton of a connector project, which passes the standard suites (`caudal connect new NAME`)."""

import importlib.util
import keyword
import re
from enum import StrEnum
from pathlib import Path
from string import Template
from typing import Final

from connect.api.errors import ConfigError

_TEMPLATES: Final = Path(__file__).with_name("templates")
_NAME: Final = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_NAME_LENGTH_MAX: Final = 50
_FILES: Final = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "config.py": "$package/config.py",
    "source.py": "$package/source.py",
    "sink.py": "$package/sink.py",
    "test_source.py": "tests/test_source.py",
    "test_sink.py": "tests/test_sink.py",
}
"""Which template becomes which file."""


class Kind(StrEnum):
    """What a project holds."""

    SOURCE = "source"
    SINK = "sink"
    BOTH = "both"


def write_connector(name: str, parent: Path, *, kind: Kind = Kind.BOTH) -> list[Path]:
    """Write a project of this name below a folder, and return its files; ConfigError when that is not possible."""
    package = _package(name)
    folder = parent / name
    if folder.exists():
        raise ConfigError(f"{folder} already exists: choose another name or another folder")
    words = {"name": name, "package": package, "Name": "".join(map(str.capitalize, package.split("_")))}
    unwanted = {Kind.SOURCE: "sink", Kind.SINK: "source", Kind.BOTH: None}[kind]
    written = []
    for source, target in _FILES.items():
        if unwanted is None or unwanted not in source:
            path = folder / Template(target).substitute(words)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = _for_kind((_TEMPLATES / f"{source}.template").read_text(), kind)
            path.write_text(Template(text).substitute(words))
            written.append(path)
    about = folder / package / "__init__.py"
    about.write_text(f'"""Connectors of {name}."""\n')
    return sorted([*written, about])


def _package(name: str) -> str:
    package = name.replace("-", "_")
    if not _NAME.fullmatch(name) or len(name) > _NAME_LENGTH_MAX or keyword.iskeyword(package):
        raise ConfigError(f"{name!r} is not a valid name: use lower-case letters, digits and single dashes")
    if importlib.util.find_spec(package) is not None:
        raise ConfigError(f"{name!r} is the name of an installed Python package: choose another name")
    return package


def _for_kind(text: str, kind: Kind) -> str:
    """Omits lines for other kinds: `%both source` starts lines for these two kinds, `%end` lines for all."""
    kept = []
    is_included = True
    for line in text.splitlines(keepends=True):
        if line.startswith("%"):
            kinds = line[1:].split()
            is_included = kinds == ["end"] or kind in kinds
        elif is_included:
            kept.append(line)
    return "".join(kept)
