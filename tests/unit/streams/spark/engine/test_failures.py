import pytest

from streams.errors import EngineError, SchemaConflict
from streams.spark.engine.failures import error_message, to_failure

_NOT_FOUND = """[TABLE_OR_VIEW_NOT_FOUND] The table or view `x` cannot be found. SQLSTATE: 42P01; line 1 pos 14;
'Project [*]
+- 'UnresolvedRelation [x], [], false
"""
_STREAM = """(STREAM_FAILED) Query [id = 1] terminated: Job aborted
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)
Caused by: java.lang.IllegalStateException: no
"""
_WORKER = """Job aborted due to stage failure: org.apache.spark.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
pyarrow.lib.ArrowInvalid: inner
ValueError: this row is bad

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1)
"""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            _NOT_FOUND,
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `x` cannot be found.; line 1 pos 14",
        ),
        (_STREAM, "(STREAM_FAILED) Query [id = 1] terminated: Job aborted"),
        (_WORKER, "ValueError: this row is bad"),
        (
            "[PARSE_SYNTAX_ERROR] near 'x'. SQLSTATE: 42601 (line 1, pos 0)",
            "[PARSE_SYNTAX_ERROR] near 'x'. (line 1, pos 0)",
        ),
        ("plain", "plain"),
        ("", "RuntimeError"),
    ],
)
def test_people_read_what_happened_and_not_where_in_java(said: str, expected: str) -> None:
    assert error_message(RuntimeError(said)) == expected


def test_a_message_without_end_is_cut() -> None:
    assert len(error_message(RuntimeError("x" * 1_000_000))) == 4000


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (EngineError("UnknownJob", "x"), "UnknownJob"),
        (SchemaConflict("t", "c", has="int", given="string"), "SchemaConflict"),
        (KeyError("x"), "KeyError"),
    ],
)
def test_the_kind_of_a_failure_is_the_name_of_its_class(error: Exception, kind: str) -> None:
    assert to_failure(error).kind == kind
