import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.cli import main


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


def test_statements_without_mistakes_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pipeline.sql"
    file.write_text("SHOW TOPICS;\nSELECT a FROM b EMIT CHANGES;\n")
    assert main(["sql", "--check", str(file)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "2 statements, no mistakes" in captured.err


def test_each_mistake_is_shown_with_its_line_and_a_mark_below_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pipeline.sql"
    file.write_text("SHOW TOPICS;\nSELECT a\n\tFROM 日本 WERE b = 1;\nDROP STREM s;\n".replace("日本", "`日本`"))
    assert main(["sql", "--check", str(file)]) == 1
    assert capsys.readouterr().out == (
        f"{file}:3:12: Expected the end of the statement; found WERE. Did you mean WHERE?\n"
        "   FROM `日本` WERE b = 1;\n"
        "               ^^^^\n"
        "\n"
        f"{file}:4:6: Expected STREAM, TABLE, CONNECTOR or TYPE after DROP; found STREM. Did you mean STREAM?\n"
        "  DROP STREM s;\n"
        "       ^^^^^\n"
        "\n"
    )


def test_statements_may_be_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "--check", "-e", "SHOW TOPICZ"]) == 1
    assert "-e:1:6: Expected what to list after SHOW; found TOPICZ. Did you mean TOPICS?" in capsys.readouterr().out


def test_statements_may_come_from_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\ufeffSHOW TOPICS;".encode())))
    assert main(["sql", "--check", "-"]) == 0
    assert "1 statement, no mistakes" in capsys.readouterr().err


def test_json_names_the_place_of_each_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "--check", "-o", "json", "-e", "SHOW TOPICS; SELEC 1;"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "statements": 2,
        "mistakes": [
            {
                "line": 1,
                "column": 14,
                "end_line": 1,
                "end_column": 19,
                "message": "No statement begins with SELEC. Did you mean SELECT?",
            }
        ],
        "more": False,
    }


def test_variables_can_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "--check", "-e", "SELECT ${column} FROM t;"]) == 1
    assert "The variable column is not defined" in capsys.readouterr().out
    assert main(["sql", "--check", "-e", "SELECT ${column} FROM t;", "--define", "column=price"]) == 0


def test_a_thousand_mistakes_are_not_all_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "--check", "-e", "x;" * 100_000]) == 1
    captured = capsys.readouterr()
    assert captured.out.count("No statement begins with x") == 100
    assert "more" in captured.err


def test_control_characters_of_a_text_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "--check", "-e", "SELECT '\x1b[2J' FROM \x1b[31m t;"]) == 1
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["a.sql", "-f", "b.sql"], "either a file or"),
        (["--check"], "either a file or"),
        (["--check", "a.sql", "-e", "SHOW TOPICS;"], "either a file or"),
        (["--check", "-e", "x", "--define", "x"], "NAME=VALUE"),
        (["--check", "there-is-no-such-file.sql"], "cannot be read"),
    ],
)
def test_wrong_use_is_explained(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_file_in_another_encoding_is_refused_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "latin.sql"
    file.write_bytes(b"SHOW TOPICS;\nPRINT '\xe9';\n")
    assert main(["sql", "--check", str(file)]) == 2
    assert "line 2" in capsys.readouterr().err


@pytest.mark.processes
def test_checking_loads_neither_spark_nor_clients() -> None:
    code = (
        "import sys; from deploy.cli import main; main(['sql', '--check', '-e', 'SHOW TOPICS;']); "
        "print(sorted({'pyspark', 'py4j', 'pyarrow'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert shown.stdout == "[]\n"
