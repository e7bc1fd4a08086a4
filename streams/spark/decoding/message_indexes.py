"""Which message of its schema each of many Protobuf values is."""

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from schema_registry.serdes.arrow.binary import places, taken, without
from schema_registry.serdes.arrow.reading import Bad
from schema_registry.serdes.errors import NotFramed
from schema_registry.serdes.framing import Frame, read_message_indexes
from streams.spark.decoding.frames import Group

Indexes = tuple[int, ...]

FIRST_MESSAGE: Final[Indexes] = (0,)


class Messages(NamedTuple):
    """Values of one schema by the message that they are."""

    groups: list[tuple[Indexes, Group]]
    bad: Bad


def by_message(group: Group) -> Messages:
    """Group values of a Protobuf schema by their message; mostly all are of the first one."""
    if group.is_in_header:
        return _in_header(group)
    data, starts, lengths = places(group.bodies)
    is_first = lengths > 0
    is_first[is_first] = data[starts[is_first]] == 0
    found = Messages([], [])
    if is_first.any():
        these = np.flatnonzero(is_first)
        bodies = without(taken(group.bodies, these), 1)
        found.groups.append((FIRST_MESSAGE, group._replace(rows=group.rows[these], bodies=bodies)))
    if not is_first.all():
        _others(group, np.flatnonzero(~is_first).tolist(), found)
    return found


def _in_header(group: Group) -> Messages:
    try:
        indexes, _ = read_message_indexes(Frame(group.schema, group.tail, 0, is_in_header=True))
    except NotFramed as error:
        return Messages([], [(row, error) for row in group.rows.tolist()])
    return Messages([(indexes, group)], [])


def _others(group: Group, places_: list[int], found: Messages) -> None:
    by_indexes: dict[Indexes, tuple[list[int], list[bytes]]] = {}
    for place in places_:
        row, body = int(group.rows[place]), group.bodies[place].as_py()
        try:
            indexes, end = read_message_indexes(Frame(group.schema, body, 0, is_in_header=False))
        except NotFramed as error:
            found.bad.append((row, error))
        else:
            rows, bodies = by_indexes.setdefault(indexes, ([], []))
            rows.append(row)
            bodies.append(body[end:])
    for indexes, (rows, bodies) in by_indexes.items():
        made = pa.array(bodies, type=group.bodies.type)
        found.groups.append((indexes, group._replace(rows=np.array(rows, dtype=np.int64), bodies=made)))
