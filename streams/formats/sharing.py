"""The schemas of registries, opened once per process so that all who read and write share connections and schemas."""

import atexit
import os
from typing import Final

import msgspec

from streams.formats.registry import RegistrySettings, Schemas

_OPEN_MAX: Final = 20
_open: dict[tuple[int, bytes], Schemas] = {}


def shared_schemas(settings: RegistrySettings) -> Schemas:
    """The schemas of a registry, the same object for equal settings; a fork has its own."""
    key = os.getpid(), msgspec.json.encode(settings, order="sorted")
    found = _open.get(key)
    if found is None:
        if len(_open) >= _OPEN_MAX:
            _open.clear()
        found = _open[key] = Schemas(settings)
    return found


def close_shared() -> None:
    """Close the connections of this process, but not those that a fork inherited."""
    for (process, _), schemas in list(_open.items()):
        if process == os.getpid():
            schemas.close()
    _open.clear()


atexit.register(close_shared)
