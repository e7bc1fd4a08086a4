"""Formats stack traces faster than `traceback`, which would take most of the time that a bad record costs."""

import linecache
import traceback
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Final

from connect.api.errors import java_name_of

_CAUSE: Final = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT: Final = "\nDuring handling of the above exception, another exception occurred:\n\n"
_FRAMES_MAX: Final = 200
"""More than anyone reads; endless recursion has thousands."""


def stack_trace(error: BaseException) -> str:
    """The stack trace of an error with its causes. The first line, which tools show, is in Kafka Connect's format."""
    return f"{java_name_of(error)}: {error}\n{''.join(_parts(error))}"


def _parts(error: BaseException) -> Iterator[str]:
    """Like `traceback.format_exception`, without markers below the lines."""
    chain = list(_chain(error))
    if any(isinstance(link, BaseExceptionGroup) for link, _ in chain):
        yield from traceback.format_exception(error)
        return
    for link, joint in reversed(chain):
        if link.__traceback__ is not None:
            yield "Traceback (most recent call last):\n"
            at = link.__traceback__
            for _ in range(_FRAMES_MAX):
                yield _frame(at.tb_frame.f_code, at.tb_lineno)
                if at.tb_next is None:
                    break
                at = at.tb_next
            else:
                yield "  ...\n"
        yield from traceback.format_exception_only(link)
        yield joint


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """An error and its causes, the last one first, each with the text that connects it to the next."""
    seen: set[int] = set()
    link: BaseException | None = error
    joint = ""
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link, joint
        if link.__cause__ is not None:
            link, joint = link.__cause__, _CAUSE
        else:
            link, joint = None if link.__suppress_context__ else link.__context__, _CONTEXT


@lru_cache(maxsize=4096)
def _frame(code: CodeType, line: int) -> str:
    """Cached, because bad records fail in few places."""
    text = linecache.getline(code.co_filename, line).strip()
    shown = f"    {text}\n" if text else ""
    return f'  File "{code.co_filename}", line {line}, in {code.co_name}\n{shown}'
