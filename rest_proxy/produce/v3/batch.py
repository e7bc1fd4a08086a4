"""Batches of API v3: records with ids, each with a result under its id."""

import re
from collections.abc import Sequence

import msgspec

from rest_proxy.errors import ProxyError
from rest_proxy.produce.v3.requests import entry_id, parse_batch
from rest_proxy.produce.v3.results import BatchResult, failed_record
from rest_proxy.produce.v3.sender import Result

_ID = re.compile(r"[0-9a-zA-Z_-]{1,80}")
_BAD_BATCH = 42208


class Batch(msgspec.Struct, frozen=True):
    """The entries of a batch and their ids."""

    ids: tuple[str, ...]
    entries: tuple[msgspec.Raw, ...]


def read_batch(body: bytes, max_entries: int) -> Batch:
    """Parse and check a batch; raises ProxyError when it is invalid as a whole."""
    if not body.strip():
        raise ProxyError(_BAD_BATCH, "Request body is empty. Data is required.")
    entries = parse_batch(body).entries or []
    if len(entries) > max_entries:
        count = f"{len(entries)}, the limit is {max_entries} (produce.batch.max.entries)"
        raise ProxyError(_BAD_BATCH, f"Too many entries in batch. There are {count}.")
    ids = tuple(_check_id(entry_id(text)) for text in entries)
    if len(set(ids)) < len(ids):
        raise ProxyError(_BAD_BATCH, "Batch entry IDs are not distinct.")
    if not entries:
        raise ProxyError(_BAD_BATCH, "Empty batch.")
    return Batch(ids, tuple(entries))


def batch_result(ids: Sequence[str], results: Sequence[Result]) -> BatchResult:
    """The results of a batch, successes and failures apart."""
    batch = BatchResult(successes=[], failures=[])
    for name, result in zip(ids, results, strict=True):
        if isinstance(result, ProxyError):
            batch.failures.append(failed_record(result, name))
        else:
            batch.successes.append(msgspec.structs.replace(result, id=name, error_code=msgspec.UNSET))
    return batch


def _check_id(name: object) -> str:
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise ProxyError(
            _BAD_BATCH,
            "Batch entry identifier is not a valid string. It must have 1 to 80 letters, digits, hyphens, underscores.",
        )
    return name
