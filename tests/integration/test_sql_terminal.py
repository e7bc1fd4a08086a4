"""`caudal sql` with the real service, started by the launcher: at a prompt on a terminal, and without one."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.admin import eventually
from tests.support.platform import PlatformProcess, caudal, run_caudal
from tests.support.pty_process import PtyProcess
from tests.support.service import service_environment
from tests.support.spark_java import needs_java

pytestmark = pytest.mark.timeout(600)

_PATIENCE_S: Final = 240.0
_SMALL: Final = ("streams:spark.master=local[2]", "streams:spark.driver.memory=700m")
_PIPELINE: Final = """
CREATE STREAM orders (item STRING, price DOUBLE)
  WITH (KAFKA_TOPIC = 'orders', PARTITIONS = 1, KEY_FORMAT = 'NONE', VALUE_FORMAT = 'JSON');
INSERT INTO orders VALUES ('canoe', 100);
INSERT INTO orders VALUES ('canoe', 50);
INSERT INTO orders VALUES ('rope', 5);
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformProcess]:
    folder = tmp_path_factory.mktemp("sql")
    (folder / "pipeline.sql").write_text(_PIPELINE)
    options = ("--without", "rest-proxy", "--without", "connect")
    with PlatformProcess(folder / "platform", *options, settings=_SMALL) as running:
        made = run_caudal("sql", "-s", running.url("streams"), str(folder / "pipeline.sql"))
        assert made.returncode == 0, made.stdout + made.stderr
        assert "Stream created" in made.stdout
        yield running


def _lines(platform: PlatformProcess, text: str, *options: str) -> tuple[int, str, str]:
    command = caudal("sql", "-s", platform.url("streams"), "-e", text, *options)
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False, env=service_environment()
    )
    return done.returncode, done.stdout, done.stderr


def test_the_platform_is_found_by_its_folder(platform: PlatformProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUDAL_DATA", str(platform.data))
    found = run_caudal("sql", "-e", "SHOW STREAMS;", "-o", "json")
    (source,) = json.loads(found.stdout)["streams"]
    assert (source["name"], source["topic"], source["valueFormat"]) == ("ORDERS", "orders", "JSON")


def test_streams_topics_functions_and_properties_are_tables(platform: PlatformProcess) -> None:
    text = "SHOW STREAMS; SHOW TABLES; SHOW TOPICS; SHOW FUNCTIONS; SHOW PROPERTIES; SHOW TYPES; SHOW QUERIES;"
    code, out, err = _lines(platform, f"{text} DESCRIBE orders; DESCRIBE orders EXTENDED; DESCRIBE FUNCTION concat;")
    assert code == 0, out + err
    heads = ("Stream Name", "Kafka Topic", "Function Name", "Property", "Field", "Timestamp field", "Variation")
    assert [head for head in heads if head not in out] == []
    assert "no tables yet" in err


def test_a_mistake_that_only_the_service_knows_is_marked_in_its_line(platform: PlatformProcess) -> None:
    code, out, err = _lines(platform, "SHOW STREAMS;\nSELECT item,\n  prise FROM orders EMIT CHANGES;")
    assert code == 1
    assert "ORDERS" in out
    assert "-e:3:3: " in err
    assert "    prise FROM orders EMIT CHANGES;\n    ^^^^^\n" in err


def test_records_of_a_topic_are_printed(platform: PlatformProcess) -> None:
    code, out, err = _lines(platform, "PRINT orders FROM BEGINNING LIMIT 2;")
    assert code == 0, out + err
    assert out.count("rowtime:") == 2
    assert "canoe" in out


def test_a_property_that_does_not_exist_is_refused_when_it_is_set(platform: PlatformProcess) -> None:
    code, _, err = _lines(platform, "SET 'no.such.property' = '1';")
    assert code == 1
    assert "no.such.property" in err


@needs_java
def test_rows_of_a_query_come_as_json_until_its_limit(platform: PlatformProcess) -> None:
    text = "SET 'auto.offset.reset' = 'earliest'; SELECT item, price FROM orders EMIT CHANGES LIMIT 3;"
    code, out, err = _lines(platform, text, "-o", "json")
    assert code == 0, out + err
    rows = [json.loads(line) for line in out.splitlines()]
    assert sorted((row["ITEM"], row["PRICE"]) for row in rows) == [("canoe", 50.0), ("canoe", 100.0), ("rope", 5.0)]


@needs_java
def test_at_the_prompt_a_table_keeps_up_with_the_query_until_ctrl_c(platform: PlatformProcess, tmp_path: Path) -> None:
    environment = {
        **service_environment(),
        "CAUDAL_CONFIG_HOME": str(tmp_path),
        "CAUDAL_STREAMS": platform.url("streams"),
    }
    with PtyProcess(caudal("sql"), environment) as terminal:
        terminal.wait_for("sql>")
        terminal.type("SHOW STREAMS;\r")
        terminal.wait_for("ORDERS", after=terminal.wait_for("Stream Name"))
        terminal.type("SET 'auto.offset.reset' = 'earliest';\r")
        terminal.wait_for("from now on")
        terminal.type("SELECT item, AVG(price) AS average\rFROM orders\rGROUP BY item EMIT CHANGES;\r")
        terminal.wait_for("75.0", timeout_s=_PATIENCE_S)
        before = terminal.wait_for("Ctrl-C ends the query")
        code, out, err = _lines(platform, "INSERT INTO orders VALUES ('rope', 15);")
        assert code == 0, out + err
        after = terminal.wait_for("10.0", after=before, timeout_s=_PATIENCE_S)
        terminal.type("\x03")
        after = terminal.wait_for("Query terminated", after=after)
        terminal.type("HISTORY\r")
        after = terminal.wait_for("SHOW STREAMS;", after=after)
        terminal.wait_for("sql>", after=after)
        terminal.type("\x04")
        assert terminal.wait() == 0
    history = tmp_path / "sql-history"
    assert history.stat().st_mode & 0o077 == 0
    assert "GROUP BY item" in history.read_text()


@needs_java
def test_a_table_is_made_described_asked_by_its_key_and_dropped(platform: PlatformProcess) -> None:
    query = "SELECT item, COUNT(*) AS n FROM orders GROUP BY item"
    code, out, err = _lines(platform, f"SET 'auto.offset.reset' = 'earliest'; CREATE TABLE sold AS {query};")
    assert code == 0, out + err

    def asked() -> list[str]:
        return _lines(platform, "SELECT * FROM sold WHERE item = 'canoe';", "-o", "json")[1].splitlines()

    (row,) = eventually(asked, lambda rows: rows[-1:] == ['{"ITEM": "canoe", "N": 2}'], timeout_s=_PATIENCE_S)
    assert json.loads(row) == {"ITEM": "canoe", "N": 2}
    code, out, err = _lines(platform, "SHOW QUERIES; SHOW TABLES; DESCRIBE sold EXTENDED;", "-o", "json")
    assert code == 0, out + err
    listed, tables, described = (json.loads(f"{{{text}") for text in f"\n{out}".split("\n{")[1:])
    (running,) = listed["queries"]
    assert tables["tables"][0]["name"] == "SOLD"
    assert described["sourceDescription"]["fields"][0]["type"] == "KEY"
    code, out, err = _lines(
        platform, f"EXPLAIN {running['id']}; TERMINATE {running['id']}; DROP TABLE sold DELETE TOPIC;"
    )
    assert code == 0, out + err
    assert "Execution plan:" in out
