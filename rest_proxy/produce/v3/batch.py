"""Batches of API v3: records with names, each with an outcome under its name."""

import re
from collections.abc import Sequence

import msgspec

from rest_proxy.errors import ProxyError
from rest_proxy.produce.v3.records import Result
from rest_proxy.produce.v3.requests import entry_id, parse_batch
from rest_proxy.produce.v3.results import BatchAnswer, FailedEntry, entry

_ID = re.compile(r"[0-9a-zA-Z_-]{1,80}")
_BAD_BATCH = 42208


class Batch(msgspec.Struct, frozen=True):
    """The entries of a batch and what they are called."""

    ids: tuple[str, ...]
    entries: tuple[msgspec.Raw, ...]


def read_batch(body: bytes, max_entries: int) -> Batch:
    """A batch that may be sent; raises ProxyError where it is wrong as a whole."""
    if not body.strip():
        raise ProxyError(_BAD_BATCH, "Request body is empty. Data is required.")
    entries = parse_batch(body).entries or []
    if len(entries) > max_entries:
        most = f"{len(entries)}, and at most {max_entries} are taken (produce.batch.max.entries)"
        raise ProxyError(_BAD_BATCH, f"Too many entries in batch. There are {most}.")
    ids = tuple(_checked(entry_id(text)) for text in entries)
    if len(set(ids)) < len(ids):
        raise ProxyError(_BAD_BATCH, "Batch entry IDs are not distinct.")
    if not entries:
        raise ProxyError(_BAD_BATCH, "Empty batch.")
    return Batch(ids, tuple(entries))


def batch_answer(ids: Sequence[str], results: Sequence[Result]) -> BatchAnswer:
    """What became of each entry."""
    answer = BatchAnswer(successes=[], failures=[])
    for name, result in zip(ids, results, strict=True):
        if isinstance(result, ProxyError):
            answer.failures.append(FailedEntry(name, result.code, result.message))
        else:
            answer.successes.append(entry(name, result))
    return answer


def _checked(name: object) -> str:
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise ProxyError(
            _BAD_BATCH,
            "Batch entry identifier is not a valid string. It must have 1 to 80 letters, digits, hyphens, underscores.",
        )
    return name
