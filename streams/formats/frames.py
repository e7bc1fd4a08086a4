"""Which schema each of many values names, found without looking at them one by one."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.serdes.arrow.binary import Rows, places, take_rows, without
from schema_registry.serdes.arrow.reading import Bad, all_rows
from schema_registry.serdes.errors import NotFramed
from schema_registry.serdes.framing import Frame, header_name, read_frame, read_message_indexes

Indexes = tuple[int, ...]
FIRST_MESSAGE: Final[Indexes] = (0,)

_ID_BYTES: Final = 5
_WEIGHTS: Final = np.array([1 << 24, 1 << 16, 1 << 8, 1], dtype=np.int64)


class Group(NamedTuple):
    """Values that name the same schema."""

    schema: int | str
    """Its id, or its guid."""
    rows: Rows
    bodies: pa.Array
    """The data after the name."""
    tail: bytes = b""
    """The rest of a header after the name: message indexes of Protobuf."""
    is_in_header: bool = False


class Groups(NamedTuple):
    """Values by the schema that they name."""

    groups: list[Group]
    nulls: Rows
    bad: Bad


def group_by_schema(values: pa.Array, headers: pa.Array | None = None, *, is_key: bool = False) -> Groups:
    """Group values by their schemas; those that name none are bad. A header takes precedence over the value."""
    rows = all_rows(len(values))
    nulls = rows[:0]
    if values.null_count:
        is_null = values.is_null().to_numpy(zero_copy_only=False)
        nulls, rows = rows[is_null], rows[~is_null]
    by_header = _rows_by_header(headers, rows, header_name(is_key=is_key)) if headers is not None else {}
    if by_header:
        rows = rows[~np.isin(rows, np.concatenate(list(by_header.values())))]
    found = Groups([], nulls, [])
    is_framed, ids = _ids(values, rows)
    if not is_framed.all():
        _group_others(values, rows[~is_framed], found)
        rows, ids = rows[is_framed], ids[is_framed]
    if len(rows):
        for schema_id in [ids[0]] if (ids == ids[0]).all() else np.unique(ids):
            some = rows[ids == schema_id]
            found.groups.append(Group(int(schema_id), some, without(take_rows(values, some), _ID_BYTES)))
    for header, some in by_header.items():
        try:
            frame = read_frame(b"", header)
        except NotFramed as error:
            found.bad.extend((row, error) for row in some.tolist())
        else:
            tail = header[frame.start :]
            found.groups.append(Group(frame.schema, some, take_rows(values, some), tail, is_in_header=True))
    return found


def schema_ids(values: pa.Array) -> pa.Array:
    """The ids before values, null if there is none."""
    is_framed, ids = _ids(values, all_rows(len(values)))
    if values.null_count:
        is_framed &= values.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(ids, mask=~is_framed)


def _ids(values: pa.Array, rows: Rows) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Whether each value begins with a 0 and an id, and the ids."""
    data, starts, lengths = places(values)
    starts, lengths = starts[rows], lengths[rows]
    is_framed = lengths >= _ID_BYTES
    ids = np.zeros(len(rows), dtype=np.int64)
    if is_framed.any():
        # The first five bytes of every value, at once: 0, and the id with its high byte first.
        windows = np.lib.stride_tricks.sliding_window_view(data, _ID_BYTES)[starts[is_framed]]
        ids[is_framed] = windows[:, 1:] @ _WEIGHTS
        is_framed[is_framed] = windows[:, 0] == 0
    return is_framed, ids


def _group_others(values: pa.Array, rows: Rows, found: Groups) -> None:
    """Values that begin with a guid, which few programs write, or do not name a schema."""
    by_guid: dict[str, tuple[list[int], list[bytes]]] = {}
    for row in rows.tolist():
        data = values[row].as_py()
        try:
            frame = read_frame(data)
        except NotFramed as error:
            found.bad.append((row, error))
        else:
            some, bodies = by_guid.setdefault(str(frame.schema), ([], []))
            some.append(row)
            bodies.append(data[frame.start :])
    for guid, (some, bodies) in by_guid.items():
        found.groups.append(Group(guid, np.array(some, dtype=np.int64), pa.array(bodies, type=values.type)))


def _rows_by_header(headers: pa.Array, present: Rows, name: str) -> dict[bytes, Rows]:
    """Rows by the header that names their schema; the first of several counts, and null is ignored."""
    entries = headers.flatten()
    lengths = pc.fill_null(pc.list_value_length(headers), 0).to_numpy()
    rows = np.repeat(all_rows(len(headers)), lengths)
    is_name = pc.fill_null(pc.equal(entries.field("key"), name), False).to_numpy(zero_copy_only=False)
    named_entries = np.flatnonzero(is_name)
    if not len(named_entries):
        return {}
    named, firsts = np.unique(rows[named_entries], return_index=True)
    codes = entries.field("value").take(pa.array(named_entries[firsts])).dictionary_encode()
    indices = pc.fill_null(codes.indices, -1).to_numpy().copy()
    indices[~np.isin(named, present)] = -1
    by_content = {content: named[indices == code] for code, content in enumerate(codes.dictionary.to_pylist())}
    return {content: some for content, some in by_content.items() if len(some)}


# --- which message of a Protobuf schema ------------------------------------------------------------------------------


class Messages(NamedTuple):
    """Values of one schema by their message."""

    groups: list[tuple[Indexes, Group]]
    bad: Bad


def group_by_message(group: Group) -> Messages:
    """Group values of a Protobuf schema by their message, which is mostly the first one."""
    if group.is_in_header:
        try:
            indexes, _ = read_message_indexes(Frame(group.schema, group.tail, 0, is_in_header=True))
        except NotFramed as error:
            return Messages([], [(row, error) for row in group.rows.tolist()])
        return Messages([(indexes, group)], [])
    data, starts, lengths = places(group.bodies)
    is_first = lengths > 0
    is_first[is_first] = data[starts[is_first]] == 0
    found = Messages([], [])
    if is_first.any():
        these = np.flatnonzero(is_first)
        bodies = without(take_rows(group.bodies, these), 1)
        found.groups.append((FIRST_MESSAGE, group._replace(rows=group.rows[these], bodies=bodies)))
    by_indexes: dict[Indexes, tuple[list[int], list[bytes]]] = {}
    for place in np.flatnonzero(~is_first).tolist():
        row, body = int(group.rows[place]), group.bodies[place].as_py()
        try:
            indexes, end = read_message_indexes(Frame(group.schema, body, 0, is_in_header=False))
        except NotFramed as error:
            found.bad.append((row, error))
        else:
            rows, others = by_indexes.setdefault(indexes, ([], []))
            rows.append(row)
            others.append(body[end:])
    for indexes, (rows, others) in by_indexes.items():
        made = pa.array(others, type=group.bodies.type)
        found.groups.append((indexes, group._replace(rows=np.array(rows, dtype=np.int64), bodies=made)))
    return found
