"""Files and addresses that a configuration makes a connector use, so that the operator's limits can be checked."""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple
from urllib.parse import urlsplit

_URL: Final = re.compile(r"[A-Za-z][\w+.-]*://[^\s,;]+")
_HOST_KEY: Final = re.compile(r"(?i)(^|[._-])(host|hosts|hostname|servers?|address(es)?|endpoints?)$")
_FILE_KEY: Final = re.compile(r"(?i)(^|[._-])(location|file|filename|path|dir|directory)$")

_OF_WORKER: Final = ("name", "topics", "transforms", "predicates", "errors.", "topic.creation.", "connector.class")
"""Keys that the worker itself understands; none of them names a file or an address."""


class Reach(Enum):
    """What a place is."""

    PATH = auto()
    """A file or a folder."""
    ADDRESS = auto()
    """Another machine: `host` or `host:port`."""


class Place(NamedTuple):
    """A file or an address, and the key that names it."""

    key: str
    reach: Reach
    value: str


def path(key: str, text: str | None) -> Iterator[Place]:
    """A file or a folder, if there is one."""
    if text:
        yield Place(key, Reach.PATH, text)


def servers(key: str, text: str | None) -> Iterator[Place]:
    """Addresses, separated by commas, each `host:port` or a URL."""
    for part in (text or "").split(","):
        if "://" in part:
            yield from url(key, part.strip())
        elif part.strip():
            yield Place(key, Reach.ADDRESS, part.strip())


def url(key: str, text: str | None) -> Iterator[Place]:
    """The address in a URL; the path in one without an address, such as `file:///folder` and `unix:///socket`."""
    if not text:
        return
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        yield Place(key, Reach.ADDRESS, text)  # it cannot be read, so it is allowed only if everything is
        return
    if not host or parts.scheme in ("file", "unix"):
        yield Place(key, Reach.PATH, parts.path)
        return
    shown = f"[{host}]" if ":" in host else host
    yield Place(key, Reach.ADDRESS, f"{shown}:{port}" if port is not None else shown)


def guessed(config: Mapping[str, str]) -> Iterator[Place]:
    """Whatever looks like a file or an address, in a configuration that nothing more is known of."""
    for key, text in config.items():
        if key.startswith(_OF_WORKER):
            continue
        found = _URL.findall(text)
        for one in found:
            yield from url(key, one.removeprefix("jdbc:"))
        if found:
            continue
        if text.startswith(("/", "~", "./", "../")) or (text and _FILE_KEY.search(key)):
            yield Place(key, Reach.PATH, text)
        elif _HOST_KEY.search(key):
            yield from servers(key, text)


def client_places(properties: Iterable[tuple[str, str]], *, prefix: str = "") -> Iterator[Place]:
    """Those in properties of a Kafka client."""
    for key, text in properties:
        if key in ("bootstrap.servers", "metadata.broker.list"):
            yield from servers(prefix + key, text)
        elif key.endswith((".location", ".file", ".keytab", ".path", ".paths")):
            yield from path(prefix + key, text)
        elif "://" in text:
            yield from url(prefix + key, text)
