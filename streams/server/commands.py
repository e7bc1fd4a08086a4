"""The statements that were carried out lately, for requests for their status."""

import threading
from collections import OrderedDict
from typing import Any, Final, TypeAlias

from streams.catalog.records import CommandNote
from streams.server.errors import NotKnown

JSON: TypeAlias = Any
_KEPT: Final = 1000


class Commands:
    """Bounded: the oldest are forgotten. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._notes: OrderedDict[str, CommandNote] = OrderedDict()

    def note(self, note: CommandNote, _offset: int) -> None:
        """A statement was carried out, on this server or another."""
        with self._lock:
            self._notes.pop(note.id, None)
            self._notes[note.id] = note
            if len(self._notes) > _KEPT:
                self._notes.popitem(last=False)

    def status(self, command_id: str) -> JSON:
        """The status of one; raises NotKnown."""
        with self._lock:
            note = self._notes.get(command_id)
        if note is None:
            raise NotKnown("Command not found")
        return {"status": "SUCCESS", "message": note.message, "queryId": note.query_id}

    def statuses(self) -> dict[str, str]:
        """The status of each."""
        with self._lock:
            return dict.fromkeys(self._notes, "SUCCESS")
