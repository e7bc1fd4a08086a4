"""Which schema each of many values names, found without looking at them one by one."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.serdes.arrow.binary import Rows, places, taken, without
from schema_registry.serdes.arrow.reading import Bad
from schema_registry.serdes.errors import NotFramed
from schema_registry.serdes.framing import header_name, read_frame

_ID_BYTES = 5
_WEIGHTS = np.array([1 << 24, 1 << 16, 1 << 8, 1], dtype=np.int64)


class Group(NamedTuple):
    """Values that name the same schema."""

    schema: int | str
    """Its id, or its guid."""
    rows: Rows
    bodies: pa.Array
    """What follows the name."""
    tail: bytes = b""
    """What follows the name in a header: message indexes of Protobuf."""
    is_in_header: bool = False


class Grouped(NamedTuple):
    """Values by what they name."""

    groups: list[Group]
    nulls: Rows
    bad: Bad


def grouped(values: pa.Array, headers: pa.Array | None = None, *, is_key: bool = False) -> Grouped:
    """Group values by their schemas; those that name none are bad. A header counts more than what is in the value."""
    rows = np.arange(len(values), dtype=np.int64)
    nulls = rows[:0]
    if values.null_count:
        is_null = values.is_null().to_numpy(zero_copy_only=False)
        nulls, rows = rows[is_null], rows[~is_null]
    by_header = _named_in_headers(headers, rows, header_name(is_key=is_key)) if headers is not None else {}
    if by_header:
        rows = rows[~np.isin(rows, np.concatenate(list(by_header.values())))]
    found = Grouped([], nulls, [])
    _group_by_prefix(values, rows, found)
    _group_by_header(values, by_header, found)
    return found


def schema_ids(values: pa.Array) -> pa.Array:
    """The ids before values, null where there is none."""
    rows = np.arange(len(values), dtype=np.int64)
    is_framed, ids = _ids(values, rows)
    if values.null_count:
        is_framed &= values.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(ids, mask=~is_framed)


def _group_by_prefix(values: pa.Array, rows: Rows, found: Grouped) -> None:
    is_framed, ids = _ids(values, rows)
    others = rows[~is_framed]
    if len(others):
        rows, ids = rows[is_framed], ids[is_framed]
        _group_others(values, others, found)
    if not len(rows):
        return
    if (ids == ids[0]).all():
        found.groups.append(Group(int(ids[0]), rows, without(taken(values, rows), _ID_BYTES)))
        return
    for schema_id in np.unique(ids):
        those = rows[ids == schema_id]
        found.groups.append(Group(int(schema_id), those, without(taken(values, those), _ID_BYTES)))


def _ids(values: pa.Array, rows: Rows) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Whether each begins with a 0 and an id, and the ids."""
    data, starts, lengths = places(values)
    starts, lengths = starts[rows], lengths[rows]
    is_framed = lengths >= _ID_BYTES
    ids = np.zeros(len(rows), dtype=np.int64)
    if is_framed.any():
        windows = np.lib.stride_tricks.sliding_window_view(data, _ID_BYTES)[starts[is_framed]]
        ids[is_framed] = windows[:, 1:] @ _WEIGHTS
        is_framed[is_framed] = windows[:, 0] == 0
    return is_framed, ids


def _group_others(values: pa.Array, rows: Rows, found: Grouped) -> None:
    """Values that begin with a guid, which hardly anybody writes, or with nothing that names a schema."""
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


def _named_in_headers(headers: pa.Array, present: Rows, name: str) -> dict[bytes, Rows]:
    """Rows by the header that names their schema; of several the first counts, and one that is null says nothing."""
    entries = headers.flatten()
    lengths = pc.fill_null(pc.list_value_length(headers), 0).to_numpy()
    rows = np.repeat(np.arange(len(headers), dtype=np.int64), lengths)
    is_name = pc.fill_null(pc.equal(entries.field("key"), name), False).to_numpy(zero_copy_only=False)
    places_ = np.flatnonzero(is_name)
    if not len(places_):
        return {}
    named, firsts = np.unique(rows[places_], return_index=True)
    codes = entries.field("value").take(pa.array(places_[firsts])).dictionary_encode()
    indices = pc.fill_null(codes.indices, -1).to_numpy().copy()
    indices[~np.isin(named, present)] = -1
    by_content = {content: named[indices == code] for code, content in enumerate(codes.dictionary.to_pylist())}
    return {content: some for content, some in by_content.items() if len(some)}


def _group_by_header(values: pa.Array, by_header: dict[bytes, Rows], found: Grouped) -> None:
    for header, rows in by_header.items():
        try:
            frame = read_frame(b"", header)
        except NotFramed as error:
            found.bad.extend((row, error) for row in rows.tolist())
            continue
        tail = header[frame.start :]
        found.groups.append(Group(frame.schema, rows, taken(values, rows), tail, is_in_header=True))
