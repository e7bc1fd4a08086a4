"""Records out of columns: the bytes of every field for all records at once, then joined record by record.

A field is written as a list of pieces: binary arrays, rows of equally many bytes (which are put next to each other
first), and bytes that are the same in every record. Arrow joins these as fast as memory is copied, so that no record
is ever looked at by itself.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.serdes.arrow.binary import BYTES_MAX, Content, binary_array
from schema_registry.serdes.errors import InvalidData

Matrix: TypeAlias = npt.NDArray[np.uint8]
"""A row of bytes for each record."""
Piece: TypeAlias = pa.Array | Matrix | bytes
Pieces: TypeAlias = list[Piece]
Unsigned: TypeAlias = npt.NDArray[np.uint64]
Flags: TypeAlias = npt.NDArray[np.bool_]

_BATCH: Final = 1 << 16
"""Records that are joined at once: more do not stay in the processor's caches."""


def write_rows(rows: pa.Array, encode: Callable[[pa.Array], Pieces], *, takes_null: bool = False) -> pa.Array:
    """One binary value per row; raises InvalidData, also for a null unless `encode` takes it."""
    if rows.null_count and not takes_null:
        raise InvalidData("a row is null, and has no data to write")
    parts = []
    for start in range(0, max(len(rows), 1), _BATCH):
        some = rows[start : start + _BATCH]
        parts.append(join(encode(some), len(some)))
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def join(pieces: Sequence[Piece], count: int) -> pa.Array:
    """The pieces of each record, one after the other."""
    parts = [part for part in _merge_fixed(pieces, count) if not isinstance(part, bytes) or part]
    if all(isinstance(part, bytes) for part in parts):
        return pa.repeat(pa.scalar(b"".join(parts), pa.binary()), count)
    if len(parts) == 1:
        return parts[0]
    parts = [pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part for part in parts]
    try:
        return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))
    except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
        raise InvalidData(f"the records are too large to be written together: {error}") from None


def _merge_fixed(pieces: Sequence[Piece], count: int) -> Iterator[Any]:
    """Rows of bytes put next to each other, and to what is the same in every record; all else as it is."""
    run: list[Matrix | bytes] = []
    for piece in [*pieces, None]:
        if isinstance(piece, bytes | np.ndarray):
            run.append(piece)
            continue
        if all(isinstance(part, bytes) for part in run):
            yield b"".join(run)  # type: ignore[arg-type]  # as has just been checked
        else:
            yield _side_by_side(run, count)
        run = []
        if piece is not None:
            yield piece


def _side_by_side(run: Sequence[Matrix | bytes], count: int) -> pa.Array:
    widths = [len(part) if isinstance(part, bytes) else part.shape[1] for part in run]
    width = sum(widths)
    if width * count > BYTES_MAX:
        raise InvalidData("the records are too large to be written together")
    made = np.empty((count, width), dtype=np.uint8)
    at = 0
    for part, size in zip(run, widths, strict=True):
        made[:, at : at + size] = np.frombuffer(part, np.uint8) if isinstance(part, bytes) else part
        at += size
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32) if width else np.zeros(count + 1, np.int32)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(made)])


def varints(numbers: Unsigned, *, is_left_out: Flags | None = None) -> Piece:
    """Numbers in seven bits per byte, low ones first; some may be left out."""
    count = len(numbers)
    least, most = (int(numbers.min()), int(numbers.max())) if count else (0, 0)
    width = max((most.bit_length() + 6) // 7, 1)
    digits = np.empty((count, width), dtype=np.uint8)
    # A number of n bytes is at least 128^(n-1); if all are, no byte has to be left out of the matrix.
    is_even = is_left_out is None and least >= 1 << 7 * (width - 1) >> (7 if width == 1 else 0)
    for place in range(width):
        np.right_shift(numbers, np.uint64(7 * place), out=digits[:, place], casting="unsafe")
    if is_even:
        digits[:, :-1] |= 0x80
        digits[:, -1] &= 0x7F
        return digits
    lengths = np.ones(count, dtype=np.int64)
    digits &= 0x7F
    for place in range(1, width):
        is_longer = numbers >= np.uint64(1 << 7 * place)
        lengths += is_longer
        digits[:, place - 1] |= is_longer.view(np.uint8) << 7
    if is_left_out is not None:
        lengths[is_left_out] = 0
    # Choosing from the matrix row by row puts the bytes of each number next to each other.
    kept = np.arange(width) < lengths[:, None]
    return binary_array(Content(digits[kept], lengths), None)


def zigzag(numbers: npt.NDArray[np.int64]) -> Unsigned:
    """Numbers of either sign as numbers without: small ones stay small."""
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def fixed(values: npt.NDArray[Any]) -> Matrix:
    """Numbers as the bytes that they are in memory."""
    found: Matrix = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize)
    return found


def sized(data: pa.Array) -> Pieces:
    """Bytes with their length before them, without a sign."""
    return [varints(lengths_of(data).view(np.uint64)), data]


def lengths_of(data: pa.Array) -> npt.NDArray[np.int64]:
    """How many bytes each value has."""
    found: npt.NDArray[np.int64] = pc.binary_length(data).to_numpy().astype(np.int64)
    return found


def bytes_of(array: pa.Array, *, only_text: bool = False) -> pa.Array:
    """Text or bytes as bytes; raises InvalidData for all else."""
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    if not is_text and (only_text or not (is_bytes or pa.types.is_fixed_size_binary(kind))):
        raise InvalidData(f"expected {'text' if only_text else 'text or bytes'}, not {array.type}")
    if pa.types.is_dictionary(array.type):
        array = array.cast(kind)
    if pa.types.is_string(kind):
        return array.view(pa.binary())
    return array if pa.types.is_binary(kind) else array.cast(pa.string() if is_text else pa.binary()).cast(pa.binary())


def text_of(array: pa.Array) -> pa.Array:
    """Text as bytes; raises InvalidData for all else, bytes included."""
    return bytes_of(array, only_text=True)


def floats_of(array: pa.Array, type_: pa.DataType) -> npt.NDArray[Any]:
    """Numbers as floating-point numbers; raises InvalidData for all else, or if they do not fit."""
    if not (pa.types.is_floating(array.type) or pa.types.is_integer(array.type)):
        raise InvalidData(f"expected numbers, not {array.type}")
    try:
        found: npt.NDArray[Any] = _cast(array, type_).to_numpy()
    except pa.ArrowInvalid as error:
        raise InvalidData(f"a number does not fit: {error}") from None
    return found


def check_booleans(array: pa.Array) -> None:
    """Raise InvalidData for all else."""
    if not pa.types.is_boolean(array.type):
        raise InvalidData(f"expected booleans, not {array.type}")


def booleans_of(array: pa.Array) -> npt.NDArray[np.uint8]:
    """Booleans as 0 and 1; raises InvalidData for all else."""
    check_booleans(array)
    found: npt.NDArray[np.uint8] = array.cast(pa.uint8()).to_numpy()
    return found


def integers_of(array: pa.Array, least: int, most: int) -> npt.NDArray[np.int64]:
    """Whole numbers in a range; raises InvalidData."""
    if not pa.types.is_integer(array.type):
        raise InvalidData(f"expected whole numbers, not {array.type}")
    try:
        found: npt.NDArray[np.int64] = _cast(array, pa.int64()).to_numpy()
    except pa.ArrowInvalid as error:
        raise InvalidData(f"a number does not fit into 64 bits: {error}") from None
    if len(found) and (found.min() < least or found.max() > most):
        raise InvalidData(f"{found.min() if found.min() < least else found.max()} is out of the range of the schema")
    return found


def _cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array if array.type == type_ else array.cast(type_)  # Casting to the same type takes its time, too.


def fill_rows(data: pa.Array, is_there: npt.NDArray[np.bool_], otherwise: bytes) -> pa.Array:
    """Bytes of some rows as bytes of all rows, `otherwise` for the rest."""
    # Null positions take nulls, which are then filled.
    positions = np.cumsum(is_there) - 1
    return data.take(pa.array(positions, mask=~is_there)).fill_null(pa.scalar(otherwise, pa.binary()))


def is_valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Which values are not null."""
    found: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return found


def items_of(array: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The items of all lists or maps, none of which is null, and how many each has; those of maps are structs."""
    kind = array.type
    if pa.types.is_map(kind):
        offsets = array.offsets.to_numpy().astype(np.int64)
        first, last = int(offsets[0]), int(offsets[-1])
        fields = [kind.key_field, kind.item_field]
        entries = pa.StructArray.from_arrays([array.keys[first:last], array.items[first:last]], fields=fields)
        return entries, np.diff(offsets)
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise InvalidData(f"expected lists or maps, not {kind}")
    counts: npt.NDArray[np.int64] = pc.list_value_length(array).to_numpy().astype(np.int64)
    return array.flatten(), counts


def entries_of(array: pa.Array) -> tuple[pa.Array, pa.Array, npt.NDArray[np.int64]]:
    """The keys and values of all maps, none of which is null, and how many each has; raises InvalidData."""
    if not pa.types.is_map(array.type):
        raise InvalidData(f"expected maps, not {array.type}")
    entries, counts = items_of(array)
    keys, values = entries.flatten()
    return keys, values, counts


def group_items(items: pa.Array, counts: npt.NDArray[np.int64]) -> pa.Array:
    """The bytes of items as those of their lists: they are next to each other already."""
    ends = np.concatenate([[0], np.cumsum(counts)])
    _, offsets, data = items.buffers()
    starts = np.frombuffer(offsets, np.int32)[items.offset : items.offset + len(items) + 1]
    return pa.Array.from_buffers(pa.binary(), len(counts), [None, pa.py_buffer(starts[ends].copy()), data])


def columns_of(struct: pa.Array, names: Collection[str], what: str) -> dict[str, pa.Array]:
    """The fields of structs that are not null; raises InvalidData for those that are not among the names."""
    if not pa.types.is_struct(struct.type):
        raise InvalidData(f"expected structs, not {struct.type}")
    columns = dict(zip((field.name for field in struct.type), struct.flatten(), strict=True))
    unknown = columns.keys() - set(names)
    if unknown:
        raise InvalidData(f"{what} has no field {min(unknown)}")
    return columns


def choices_of(columns: Mapping[str, pa.Array], names: Sequence[str], count: int) -> Iterator[tuple[str, Flags]]:
    """The rows that choose each of several columns: the first that is not null counts."""
    is_left = np.ones(count, dtype=np.bool_)
    for name in names:
        if name in columns:
            is_there = is_valid(columns[name]) & is_left
            is_left &= ~is_there
            yield name, is_there


def symbol_places(array: pa.Array, symbols: Sequence[str], what: str) -> npt.NDArray[np.int64]:
    """The places of symbols among those of an enum; raises InvalidData for others."""
    texts = text_of(array).cast(pa.string())
    found = pc.index_in(texts, value_set=pa.array(list(symbols), type=pa.string()))
    if found.null_count:
        wrong = texts.filter(found.is_null())[0].as_py()
        raise InvalidData(f"{what} has no symbol {wrong[:200]!r}")
    places: npt.NDArray[np.int64] = found.to_numpy().astype(np.int64)
    return places
