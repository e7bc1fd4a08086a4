"""Errors as people read them: what Spark says about a statement, without plans and Java's stack."""

import re
from typing import Final

from streams.spark.engine.messages import Failure

_MESSAGE_CHARACTERS_MAX: Final = 4000
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Conflict|Option)\b.*)$", re.MULTILINE)
# What follows the message proper: a plan, Java's stack, or what caused it in Java's words.
_END = re.compile(r"\n\s*(?:'?[A-Z]\w+ \[|'?[A-Z]\w+\n\+- |\+- |:- |at [\w.$]+\(|JVM stacktrace|Caused by:)|;\n'?[A-Z]")
_STATE = re.compile(r"\s*SQLSTATE: \w+")


def failure_of(error: BaseException) -> Failure:
    """What a client is told about an error."""
    return Failure(kind=_kind(error), message=readable(error))


def readable(error: BaseException) -> str:
    """The message of an error: short, in words, with the name of Spark's error condition where there is one."""
    text = _text(error)
    if ended := _END.search(text):
        text = text[: ended.start()]
    text = _STATE.sub("", text).strip().rstrip(";").strip()
    return text[:_MESSAGE_CHARACTERS_MAX] or type(error).__name__


def _text(error: BaseException) -> str:
    described = getattr(error, "desc", None) or getattr(error, "_desc", None)
    text = str(described or error)
    if "Traceback (most recent call last)" in text:
        # A Python function failed in a worker: its own last line says more than all that Spark wraps around it.
        lines = _PYTHON_ERROR.findall(text)
        return lines[-1] if lines else text
    return text


def _kind(error: BaseException) -> str:
    return str(getattr(error, "kind", None) or type(error).__name__)
