"""Everything in deploy/examples is run, against a platform of real processes: as its README says, on other ports."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.admin import eventually
from tests.support.clients.confluent import read_to_end
from tests.support.platform import SMALL_SPARK, PlatformProcess
from tests.support.service import REPOSITORY, service_environment
from tests.support.spark_java import java_problem, needs_java
from tests.support.spark_letters import letters
from tests.support.spark_tables import parquet_rows

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("curl") is None, reason="produce.sh needs the command curl"),
]

_EXAMPLES: Final = REPOSITORY / "deploy" / "examples"
_SCHEMAS: Final = {"orders": "order.avsc", "payments": "payment.proto", "deliveries": "delivery.json"}
_BY_CURL: Final = (1, 2, 3)
_REFUSED: Final = 4
_BY_PYTHON: Final = tuple(range(101, 111))
_PATIENCE_S: Final = 400.0
_RUN_NOTEBOOK: Final = """
import json, sys

notebook = json.load(open(sys.argv[1], encoding="utf-8"))
names = {"__name__": "__main__"}
for cell in notebook["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
"""


@dataclass(slots=True)
class Shop:
    """A platform on which the examples were run."""

    platform: PlatformProcess
    produced: list[dict[str, Any]] = field(default_factory=list)
    """What the REST proxy answered to each request of produce.sh."""

    @property
    def environment(self) -> dict[str, str]:
        """What tells the examples where the platform is."""
        spark = self.platform.state.spark
        assert spark is not None
        token = Path(spark.data_dir, "connect.token")
        return {
            **service_environment(),
            "BOOTSTRAP_SERVERS": self.platform.bootstrap,
            "SCHEMA_REGISTRY_URL": self.platform.url("registry"),
            "REST_PROXY_URL": self.platform.url("rest-proxy"),
            "CAUDAL_CONNECT": self.platform.url("connect"),
            "CAUDAL_REGISTRY": self.platform.url("registry"),
            "CAUDAL_BOOTSTRAP": self.platform.bootstrap,
            "CAUDAL_DATA": str(self.platform.data),
            "CAUDAL": f"{sys.executable} -m deploy.cli",
            "PYTHONPATH": str(REPOSITORY),
            "SPARK_REMOTE": f"sc://localhost:{spark.connect_port}",
            "SPARK_CONNECT_AUTHENTICATE_TOKEN": token.read_text().strip() if token.exists() else "",
        }

    def run(self, *command: str, more: Mapping[str, str] | None = None) -> str:
        """Run a command in the folder of the examples; it must succeed."""
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
            cwd=_EXAMPLES,
            env={**self.environment, **(more or {})},
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def caudal(self, *words: str) -> str:
        """Run a command of ours."""
        return self.run(sys.executable, "-m", "deploy.cli", *words)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Ask the shop's database."""
        with closing(sqlite3.connect(self.platform.data / "shop.db", timeout=60)) as database, database:
            return database.execute(statement).fetchall()

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a Spark table."""
        return parquet_rows(self.platform.data / "spark" / "warehouse" / name)

    def prepare(self) -> None:
        """Topics, schemas and connectors, as the README has them."""
        for topic, file in _SCHEMAS.items():
            self.caudal("topic", "create", topic)
            self.caudal("schema", "register", f"{topic}-value", f"schemas/{file}")
        with closing(sqlite3.connect(self.platform.data / "shop.db")) as database:
            database.executescript((_EXAMPLES / "shop.sql").read_text())
        self.run("sh", "connect.sh", *self.connectors())

    def connectors(self) -> list[str]:
        """The files of all connectors that can run here."""
        found = sorted(path.relative_to(_EXAMPLES).as_posix() for path in (_EXAMPLES / "connectors").glob("*.json"))
        return [file for file in found if java_problem() is None or "spark" not in file]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Everything prepared, and sent in both ways."""
    with PlatformProcess(tmp_path_factory.mktemp("shop") / "data", settings=SMALL_SPARK) as platform:
        shop = Shop(platform)
        shop.prepare()
        shop.produced = [json.loads(line) for line in shop.run("sh", "produce.sh").splitlines()]
        shop.run(sys.executable, "produce.py", "--orders", str(len(_BY_PYTHON)), "--first", str(_BY_PYTHON[0]))
        yield shop


def test_curl_is_told_the_place_of_every_record(shop: Shop) -> None:
    places = [offset for answer in shop.produced for offset in answer["offsets"]]

    assert [len(answer["offsets"]) for answer in shop.produced] == [4, 3, 2, 1]
    assert [place["error"] for place in places] == [None] * 10


def test_both_ways_of_producing_end_in_the_same_topics(shop: Shop) -> None:
    counts = {topic: len(read_to_end(shop.platform.bootstrap, topic)) for topic in _SCHEMAS}
    sent = len(_BY_PYTHON)

    assert counts == {"orders": 4 + 1 + sent, "payments": 3 + sent, "deliveries": 2 + sent}


def test_orders_are_rows_of_the_shop_s_database(shop: Shop) -> None:
    wanted = [*_BY_CURL, *_BY_PYTHON]
    eventually(
        lambda: [number for (number,) in shop.sql("SELECT id FROM orders WHERE country <> 'IS' ORDER BY id")],
        lambda found: found == wanted,
        timeout_s=_PATIENCE_S,
    )

    assert shop.sql("SELECT customer, item, quantity, price_cents, country FROM orders WHERE id = 2") == [
        ("Bruno", "paddle", 2, 3900, "PT")
    ]


def test_the_refused_order_arrives_once_the_shop_delivers_there(shop: Shop) -> None:
    found = eventually(
        lambda: letters(shop.platform.bootstrap, "orders-to-sql-dead-letters"),
        lambda found: len(found) >= 2,
        timeout_s=_PATIENCE_S,
    )
    assert sorted(letter.told["stage"] for letter in found) == ["TASK_PUT", "VALUE_CONVERTER"]
    assert "TASK_PUT" in shop.caudal("dlq", "show", "orders-to-sql", "--stage", "TASK_PUT")

    shop.sql("INSERT INTO countries VALUES ('IS', 'Iceland')")
    shop.caudal("dlq", "redrive", "orders-to-sql", "--stage", "TASK_PUT", "--yes")
    rows = eventually(lambda: shop.sql(f"SELECT customer FROM orders WHERE id = {_REFUSED}"), timeout_s=_PATIENCE_S)

    assert rows == [("Freyja",)]


def test_deliveries_are_lines_of_files(shop: Shop) -> None:
    archive = shop.platform.data / "archive" / "topics"

    def archived() -> set[int]:
        lines = [line for file in archive.rglob("*.json") for line in file.read_text().splitlines()]
        return {json.loads(line)["order_id"] for line in lines}

    assert eventually(archived, lambda found: found == {1, 2, *_BY_PYTHON}, timeout_s=_PATIENCE_S)


def test_visits_come_by_themselves(shop: Shop) -> None:
    found = eventually(lambda: read_to_end(shop.platform.bootstrap, "visits"), timeout_s=_PATIENCE_S)

    assert {"viewtime", "userid", "pageid"} <= json.loads(found[0].value or b"").keys()


def test_schemas_are_judged_as_the_readme_says(shop: Shop) -> None:
    assert "may follow" in _words(shop.caudal("schema", "check", "orders-value", "schemas/order-v2.avsc", "-o", "json"))
    command = [sys.executable, "-m", "deploy.cli", "schema", "check", "orders-value"]
    refused = subprocess.run(
        [*command, "schemas/order-incompatible.avsc", "-o", "json"],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
        cwd=_EXAMPLES,
        env=shop.environment,
    )

    assert refused.returncode == 1
    assert json.loads(refused.stdout)["differences"][0]["type"] == "READER_FIELD_MISSING_DEFAULT_VALUE"


def _words(answer: str) -> str:
    return "may follow" if json.loads(answer)["compatible"] else "may not follow"


@needs_java
def test_the_notebook_joins_the_tables_and_reads_a_topic(shop: Shop, tmp_path: Path) -> None:
    sent = len(_BY_PYTHON)
    for name, count in {"orders": 4 + sent, "payments": 3 + sent, "deliveries": 2 + sent}.items():
        eventually(
            lambda name=name: len(shop.table(name)),  # type: ignore[misc]  # a lambda with a default is not inferred
            lambda found, count=count: found == count,  # type: ignore[misc]
            timeout_s=_PATIENCE_S,
        )
    script = tmp_path / "notebook.py"
    script.write_text(_RUN_NOTEBOOK)
    shown = shop.run(sys.executable, "-W", "ignore", str(script), "orders.ipynb", more={"COLUMNS": "200"})
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in shown.splitlines() if "|" in line]

    assert ("1", "Ana", "canoe", "PT", "64900", "delivered") in rows
    assert ("4", "Freyja", "raft", "IS", "NULL", "NULL") in rows
    assert ("4", "Freyja", "raft", "89900") in rows
    assert ("0", "0", "1", "Ana", "canoe", "1", "64900", "PT") in rows
    assert any(row[2] == "this is no Avro" for row in rows if len(row) == 4)
    assert any(
        row[0] == "IS" and float(row[2]) == 899.0 for row in rows if len(row) == 3 and re.fullmatch("[A-Z]{2}", row[0])
    )


def test_the_notebook_is_valid_and_was_saved_without_results() -> None:
    notebook = json.loads((_EXAMPLES / "orders.ipynb").read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]

    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert [cell for cell in code if cell["outputs"] or cell["execution_count"] is not None] == []


def test_every_file_of_the_examples_is_told_in_their_readme() -> None:
    readme = (_EXAMPLES / "README.md").read_text()
    found = {path.name for path in _EXAMPLES.iterdir()} - {"README.md", "__pycache__"}

    assert [name for name in sorted(found) if f"`{name}" not in readme] == []
    assert [path.stem for path in sorted((_EXAMPLES / "connectors").iterdir()) if path.stem not in readme] == []
