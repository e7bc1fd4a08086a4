"""What `caudal sql` makes of a server's answers; with the real service: tests/integration/test_sql_terminal.py."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.cli import main
from tests.support.scripted_sql import ScriptedSql, header, row

CREATED = {
    "@type": "currentStatus",
    "commandId": "stream/`S`/create",
    "commandStatus": {"status": "SUCCESS", "message": "Stream created"},
    "commandSequenceNumber": 4,
    "warnings": [],
}
NO_COLUMN = {
    "@type": "statement_error",
    "error_code": 40001,
    "message": "Line: 2, Col: 2: SELECT column 'A' cannot be resolved. Did you mean B?",
    "entities": [],
}
RUNNING = {**CREATED, "commandStatus": {"status": "EXECUTING", "message": "..."}}
ROWS = [header("`A` INTEGER KEY, `B` STRING"), row(1, "x"), row(22, None)]
CHANGES = [header("`A` INTEGER"), row(1), row(2, is_deleted=True), {"finalMessage": "Limit Reached"}]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedSql]:
    monkeypatch.setenv("NO_COLOR", "1")
    answers = {
        "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')": (200, [CREATED]),
        "DROP STREAM s": (200, [RUNNING]),
        "/status/stream/%60S%60/create": (200, {"status": "SUCCESS", "message": "dropped"}),
        "DROP STREAM gone": (200, [{**CREATED, "commandStatus": {"status": "ERROR", "message": "it is in use"}}]),
        "CREATE STREAM t AS SELECT a FROM s": (400, NO_COLUMN),
        "/is_valid_property/no.such": (400, {"error_code": 40000, "message": "Unknown property: no.such"}),
    }
    queries: dict[str, list[Any]] = {
        "SELECT * FROM t": ROWS,
        "SELECT a FROM s EMIT CHANGES LIMIT 2": CHANGES,
        "PRINT s LIMIT 1": ["Key format: JSON", "rowtime: 1, value: \x1b[2J"],
    }
    with ScriptedSql(answers, queries) as server:
        monkeypatch.setenv("CAUDAL_STREAMS", server.url)
        yield server


def test_statements_are_run_one_after_the_other(server: ScriptedSql, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON'); INSERT INTO s VALUES (1); DROP STREAM s"
    )
    assert main(["sql", "-e", text]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == ["Stream created", "dropped"]
    assert "✓ inserted" in shown.err
    assert [body.get("commandSequenceNumber") for body in server.bodies] == [None, 4, 4]


def test_the_rows_of_a_query_that_ends_are_a_table(server: ScriptedSql, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "-e", "SELECT * FROM t;"]) == 0
    shown = capsys.readouterr()
    assert [line.split() for line in shown.out.splitlines()[1:5:1] if "─" not in line] == [
        ["A", "B"],
        ["1", "x"],
        ["22", "null"],
    ]
    assert "2 rows" in shown.err


def test_rows_are_lines_of_json_for_programs(server: ScriptedSql, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "-o", "json", "-e", "SELECT * FROM t; SELECT a FROM s EMIT CHANGES LIMIT 2;"]) == 0
    shown = capsys.readouterr()
    assert [json.loads(line) for line in shown.out.splitlines()] == [
        {"A": 1, "B": "x"},
        {"A": 22, "B": None},
        {"A": 1},
        {"A": 2, "_deleted": True},
    ]
    assert shown.err == ""


def test_rows_that_come_one_by_one_are_lines(server: ScriptedSql, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "-e", "SELECT a FROM s EMIT CHANGES LIMIT 2; PRINT s LIMIT 1;"]) == 0
    shown = capsys.readouterr()
    assert [line.strip() for line in shown.out.splitlines()] == [
        *("A", "1", "2"),
        *("Key format: JSON", "rowtime: 1, value: \\x1b[2J"),
    ]
    assert "Limit Reached" in shown.err


def test_a_mistake_keeps_everything_from_running(server: ScriptedSql, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "-e", "SHOW STREAMS;\nSHOW STREEMS;"]) == 1
    shown = capsys.readouterr()
    assert "✗ -e:2:6: " in shown.err
    assert "  SHOW STREEMS;\n       ^^^^^^^\n" in shown.err
    assert "nothing was run" in shown.err
    assert server.bodies == []


def test_what_the_service_refuses_is_shown_with_its_line(
    server: ScriptedSql, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", "-e", "SHOW STREAMS;\nCREATE STREAM t AS SELECT\n a FROM s;\nSHOW TABLES;"]) == 1
    shown = capsys.readouterr().err
    assert "✗ -e:3:2: SELECT column 'A' cannot be resolved. Did you mean B?\n   a FROM s;\n   ^\n" in shown
    assert "1 statement after it not run" in shown


def test_a_command_that_fails_fails(server: ScriptedSql, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "-e", "DROP STREAM gone;"]) == 1
    assert "✗ it is in use" in capsys.readouterr().err


def test_a_session_has_properties_and_variables(server: ScriptedSql, capsys: pytest.CaptureFixture[str]) -> None:
    text = "SET 'auto.offset.reset'='earliest'; DEFINE a = '1'; SHOW STREAMS; UNSET 'auto.offset.reset'; SHOW TABLES;"
    assert main(["sql", "--define", "b=2", "-e", f"{text} SHOW VARIABLES;"]) == 0
    first, second = server.bodies
    assert first["streamsProperties"] == {"auto.offset.reset": "earliest"}
    assert first["sessionVariables"] == {"A": "1", "B": "2"}
    assert second["streamsProperties"] == {}
    assert [line.split() for line in capsys.readouterr().out.splitlines()][3:5] == [["A", "1"], ["B", "2"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SET 'no.such'='1';", "Unknown property: no.such"),
        ("UNSET 'auto.offset.reset';", "was not set in this session"),
        ("RUN SCRIPT 'no-such.sql';", "no-such.sql cannot be read"),
        ("OUTPUT XML;", "there are TABLE and JSON"),
        ("WRAP MAYBE;", "there are ON and OFF"),
        ("SERVER nowhere;", "must look like http://host:8088"),
        ("SPOOL '/no/such/folder/x';", "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_said(
    text: str, said: str, server: ScriptedSql, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", "-e", text]) in (1, 2)
    assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_the_commands_of_the_terminal(
    server: ScriptedSql, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "it's.sql"
    script.write_text("VERSION; SELECT * FROM t;")
    copy = tmp_path / "copy.txt"
    quoted = str(script).replace("'", "''")
    text = f"SPOOL '{copy}'; SERVER; HELP; HISTORY; WRAP OFF; RUN SCRIPT '{quoted}'; SPOOL OFF; EXIT; DROP STREAM s;"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["sql"]) == 0
    shown = capsys.readouterr()
    assert "8.1.0" in shown.out
    assert "SPOOL 'file' | OFF" in shown.out
    assert "22   null" in copy.read_text()
    assert not any("DROP" in str(body.get("ksql")) for body in server.bodies)


def test_a_script_that_runs_itself_ends(
    server: ScriptedSql, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "again.sql"
    script.write_text(f"RUN SCRIPT '{script}';")
    assert main(["sql", "-f", str(script)]) == 1
    assert "10 deep" in capsys.readouterr().err


def test_a_service_that_is_away_is_told_with_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["sql", "-s", "http://127.0.0.1:1", "-e", "SHOW STREAMS;"]) == 1
    error = capsys.readouterr().err
    assert "The service of SQL cannot be reached" in error
    assert "caudal up" in error
