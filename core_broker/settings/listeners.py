"""Listeners: the addresses of a broker, written as NAME://host:port."""

import re

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from core_broker.service.settings import LIST, STRING, Kind

_LISTENER = re.compile(r"([A-Za-z0-9_.-]+)://(?:\[([0-9a-fA-F:.%]+)\]|([^:\[\]/]*)):(\d+)")


class Listener(msgspec.Struct, frozen=True):
    """One address under one name; an empty host means every address, port 0 any free port."""

    name: str
    host: str
    port: int

    @override
    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_listeners(text: str) -> tuple[Listener, ...]:
    """Read `NAME://host:port,...`; raise ValueError with the part that is wrong."""
    listeners = tuple(_parse_listener(part.strip()) for part in text.split(",") if part.strip())
    if not listeners:
        raise ValueError(f"must be {LISTENERS.allowed}")
    names = [listener.name for listener in listeners]
    if len(set(names)) != len(names):
        raise ValueError("must name each listener once")
    ports = [listener.port for listener in listeners if listener.port]
    if len(set(ports)) != len(ports):
        raise ValueError("must give each listener its own port")
    return listeners


def _parse_listener(text: str) -> Listener:
    match = _LISTENER.fullmatch(text)
    if not match or int(match[4]) > 65535:
        raise ValueError(f"must be {LISTENERS.allowed}; cannot read {text!r}")
    return Listener(match[1].upper(), match[2] or match[3] or "", int(match[4]))


LISTENERS = Kind(
    name="list",
    wire=7,
    read=parse_listeners,
    write=lambda listeners: ",".join(map(str, listeners)),
    allowed="one or more of NAME://host:port, separated by commas",
)


def parse_protocol_map(text: str) -> tuple[tuple[str, str], ...]:
    """Read `NAME:PROTOCOL,...`."""
    pairs = [part.partition(":") for part in text.split(",") if part.strip()]
    if not all(colon and name.strip() and protocol.strip() for name, colon, protocol in pairs):
        raise ValueError(f"must be {PROTOCOL_MAP.allowed}")
    return tuple((name.strip().upper(), protocol.strip().upper()) for name, _, protocol in pairs)


PROTOCOL_MAP = Kind(
    name="string",
    wire=2,
    read=parse_protocol_map,
    write=lambda pairs: ",".join(f"{name}:{protocol}" for name, protocol in pairs),
    allowed="NAME:PROTOCOL pairs separated by commas",
)

# Names of listeners are compared in upper case, as in Kafka.
LISTENER_NAME = replace(STRING, read=str.upper)
LISTENER_NAMES = replace(LIST, read=lambda text: LIST.read(text.upper()))
