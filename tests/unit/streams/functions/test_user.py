"""Files of users' functions: what is found in them, and that reading them harms nothing."""

import os
import time
from pathlib import Path

import pytest

from streams.functions.columns import user_function_on_columns
from streams.functions.deadline import FunctionTooSlow
from streams.functions.signature import Argument, Signature
from streams.functions.user import Problem, describe, find, load, load_aggregate, load_overload

pytestmark = pytest.mark.processes
HEAD = "from streams.functions.api import udaf, udf, udtf\n"
TYPES = """
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
@udf
def all_types(a: bool, b: int, c: float, d: str, e: bytes, f: date, g: time, h: datetime) -> "INTEGER":
    "Takes all types."
    return 1
@udf("NESTED")
def nested(a: list[dict[str, int | None]], b: Sequence[float], c: "Array<Decimal(4, 1)>") -> dict[str, list[str]]:
    return {}
@udf(arguments=("STRUCT<`x` INT>",), returns="map<string, bytes>", description="Given.", author="Ada", version="2")
def given(a): return None
@udtf
def rows(a: str) -> Iterator[int]: return []
"""


def _folder(path: Path, **files: str) -> Path:
    for name, text in files.items():
        (path / f"{name}.py").write_text(text)
    return path


def test_types_come_from_annotations(tmp_path: Path) -> None:
    found = describe(_folder(tmp_path, a=HEAD + TYPES, b="from __future__ import annotations\n" + HEAD + TYPES))
    assert len(found) == 4, "what is defined again is left out"
    first, nested, given, rows = found
    kinds = ["BOOLEAN", "BIGINT", "DOUBLE", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP"]
    arguments = tuple(Argument(name, kind) for name, kind in zip("abcdefgh", kinds, strict=True))
    assert first == Signature(
        name="ALL_TYPES",
        kind="scalar",
        arguments=arguments,
        result="INTEGER",
        description="Takes all types.",
        file="a.py",
    )
    assert nested.types == ("ARRAY<MAP<STRING, BIGINT>>", "ARRAY<DOUBLE>", "ARRAY<DECIMAL(4, 1)>")
    assert nested.result == "MAP<STRING, ARRAY<STRING>>"
    assert (given.types, given.result) == (("STRUCT<`x` INTEGER>",), "MAP<STRING, BYTES>")
    assert (given.description, given.author, given.version) == ("Given.", "Ada", "2")
    assert (rows.kind, rows.result) == ("table", "BIGINT")


def test_aggregates(tmp_path: Path) -> None:
    text = """
@udaf("longest")
class Longest:
    "The longest text."
    def start(self): return ""
    def add(self, state, text: str): return max(state, text, key=len)
    def result(self, state) -> str: return state
@udaf
class Total:
    def start(self): return 0
    def add(self, state, x: int, y: float): return state + x * y
    def undo(self, state, x, y): return state - x * y
    def merge(self, one, other): return one + other
    def result(self, state) -> float: return state
"""
    longest, total = describe(_folder(tmp_path, a=HEAD + text))
    assert (longest.name, longest.description) == ("LONGEST", "The longest text.")
    assert (longest.has_undo, longest.has_merge) == (False, False)
    assert (total.types, total.result, total.has_undo, total.has_merge) == (("BIGINT", "DOUBLE"), "DOUBLE", True, True)
    one = load_aggregate(tmp_path, "TOTAL", ("INTEGER", "DECIMAL(3, 1)"))
    state = one.undo(one.add(one.add(one.start(), (2, 1.5), 1), (None, 1.0), 2), (1, 1.0))
    assert one.result(one.merge(state, 3.0)) == 5.0
    assert one.result("text") is None
    with pytest.raises(ValueError, match="no aggregate TOTAL"):
        load_aggregate(tmp_path, "TOTAL", ("BIGINT", "STRING"))
    with pytest.raises(ValueError, match="no aggregate TOTAL"):
        load_aggregate(tmp_path, "TOTAL", ("BIGINT",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@udf\ndef f(x) -> int: ...", "x has no type"),
        ("@udf\ndef f(x: int): ...", "the result has no type"),
        ("@udf\ndef f(x: object) -> int: ...", "is no type of SQL"),
        ("@udf\ndef f(x: 'NUMBER') -> int: ...", "not a type"),
        ("@udf\ndef f(*, x: int) -> int: ...", "have no names in SQL: x"),
        ("@udf(arguments=['INT'])\ndef f(x, y) -> int: ...", "has 1 types, the function 2"),
        ("@udf('a-b')\ndef f(x: int) -> int: ...", "letters, digits"),
        ("@udtf\ndef f(x: int) -> int: ...", "returns a list"),
        ("@udaf\nclass F:\n  def start(self): ...", "missing: add, result"),
        (
            "@udaf\nclass F:\n  def start(self): ...\n  def add(self, state): ...\n  def result(self, s) -> int: ...",
            "`add`",
        ),
        ("@udf(kind='x')\ndef f(): ...", "TypeError"),
        ("import sys; sys.exit(1)", "SystemExit"),
        ("1 / 0", "ZeroDivisionError"),
        ("print(", "SyntaxError"),
        ("x = bytearray(1 << 40)", "MemoryError"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    good = HEAD + "@udf\ndef good(x: int) -> int: return x\n"
    found = find(_folder(tmp_path, a=HEAD + text + "\n", b=good))
    assert [one.name for one in found.functions] == ["GOOD"]
    (problem,) = found.problems
    assert problem.file == "a.py"
    assert message in problem.message


def test_files_that_end_or_stop_the_process_do_not_matter_to_others(tmp_path: Path) -> None:
    good = HEAD + "print('noise')\n@udf\ndef good(x: int) -> int: return x\n"
    threads = HEAD + "import threading, time\nthreading.Thread(target=time.sleep, args=(100,)).start()\n"
    _folder(tmp_path, a="import os; os._exit(3)", b=good, c="import time\ntime.sleep(100)", d=threads, _e="1 / 0")
    began = time.monotonic()
    found = find(tmp_path, timeout_seconds=3)
    assert time.monotonic() - began < 30
    assert [one.name for one in found.functions] == ["GOOD"]
    assert found.problems == (
        Problem("a.py", "it ended the process that reads files"),
        Problem("c.py", "it took longer than 3 seconds to be read"),
    )


def test_files_see_nothing_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_A_TEST", "x")
    text = HEAD + "import os\n@udf(description=os.environ.get('SECRET_OF_A_TEST', 'none'))\ndef f(x: int) -> int: ...\n"
    assert describe(_folder(tmp_path, a=text))[0].description == "none"


def test_folders_without_files(tmp_path: Path) -> None:
    assert describe("") == describe(tmp_path) == describe(tmp_path / "none") == []


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    text = HEAD + "@udf\ndef f(x: int) -> int: return {}\n"
    path = _folder(tmp_path, a=text.format(1)) / "a.py"
    assert load_overload(tmp_path, "F", ["BIGINT"]).target(0) == 1
    path.write_text(text.format(2))
    os.utime(path, ns=(1, 1))
    assert load_overload(tmp_path, "F", ["BIGINT"]).target(0) == 2
    path.write_text("1 / 0")
    assert load(tmp_path, "F") == []
    with pytest.raises(ValueError, match=r"has no function F\(BIGINT\)"):
        load_overload(tmp_path, "F", ["BIGINT"])


def test_a_batch_that_takes_too_long_is_interrupted(tmp_path: Path) -> None:
    import pyarrow as pa

    text = HEAD + "@udf\ndef f(x: int) -> int:\n  while True:\n    try: x += 1\n    except Exception: pass\n"
    (signature,) = describe(_folder(tmp_path, a=text))
    with pytest.raises(FunctionTooSlow, match="function F for 2 rows took longer than 0.2 seconds"):
        user_function_on_columns(signature, str(tmp_path), batch_seconds=0.2)(pa.array([1, 2]))
