"""Errors for people: what Spark says about a statement, without plans and Java's stack."""

import re
from typing import Final

from streams.spark.engine.messages import Failure

_MESSAGE_CHARACTERS_MAX: Final = 4000
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Conflict|Option)\b.*)$", re.MULTILINE)
# What follows the message proper: a plan, Java's stack, or what caused it in Java's words.
_END = re.compile(r"\n\s*(?:'?[A-Z]\w+ \[|'?[A-Z]\w+\n\+- |\+- |:- |at [\w.$]+\(|JVM stacktrace|Caused by:)|;\n'?[A-Z]")
_STATE = re.compile(r"\s*SQLSTATE: \w+")


def to_failure(error: BaseException) -> Failure:
    """An error as clients get it."""
    return Failure(kind=str(getattr(error, "kind", None) or type(error).__name__), message=error_message(error))


def error_message(error: BaseException) -> str:
    """A short message of an error, with the name of Spark's error condition where there is one."""
    text = str(getattr(error, "desc", None) or getattr(error, "_desc", None) or error)
    # When a Python function failed in a worker, its last line says more than all that Spark wraps around it.
    if "Traceback (most recent call last)" in text and (lines := _PYTHON_ERROR.findall(text)):
        text = lines[-1]
    if ended := _END.search(text):
        text = text[: ended.start()]
    text = _STATE.sub("", text).strip().rstrip(";").strip()
    return text[:_MESSAGE_CHARACTERS_MAX] or type(error).__name__
