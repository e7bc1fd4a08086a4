import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from deploy.doctor.finding import Context, Finding, Level
from deploy.doctor.java import java, spark_variables
from streams.spark.engine.class_archive import archive_file
from tests.support.made_up_java import made_up_java


def _spark(**environment: str) -> Finding:
    (finding,) = spark_variables(Context(environment=environment, data=Path()))
    return finding


def test_missing_java_is_a_problem_that_tells_how_to_install_one(tmp_path: Path) -> None:
    (finding,) = java(Context(environment={"PATH": str(tmp_path)}, data=Path()))
    assert finding.level is Level.PROBLEM
    assert any("apt-get install" in step for step in finding.next_steps)


def test_java_home_without_a_java_is_a_problem(tmp_path: Path) -> None:
    (finding,) = java(Context(environment={"JAVA_HOME": str(tmp_path)}, data=Path()))
    assert finding.level is Level.PROBLEM
    assert f"JAVA_HOME is {tmp_path}" in finding.found


@pytest.mark.processes
@pytest.mark.parametrize(
    ("is_prepared", "expected"), [(False, "faster after  caudal spark prepare"), (True, "archived")]
)
def test_java_is_reported_with_how_spark_starts_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_prepared: bool, expected: str
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    environment = made_up_java(tmp_path)
    if is_prepared:
        archive_file(environment).parent.mkdir(parents=True)
        archive_file(environment).touch()
    (finding,) = java(Context(environment=environment, data=Path()))
    assert finding.level is Level.OK
    assert f"17 at {tmp_path}/bin/java; Spark" in finding.found
    assert finding.found.endswith(expected)


def test_no_variables_of_spark_are_well() -> None:
    assert _spark().level is Level.OK


@pytest.mark.parametrize(("other", "level"), [("3.5.1", Level.PROBLEM), (version("pyspark"), Level.OK)])
def test_home_of_another_spark_is_a_problem_unless_it_is_of_our_version(
    other: str, level: Level, tmp_path: Path
) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / f"spark-core_2.13-{other}.jar").touch()
    assert _spark(SPARK_HOME=str(tmp_path)).level is level


def test_home_of_spark_that_holds_none_is_a_problem(tmp_path: Path) -> None:
    finding = _spark(SPARK_HOME=str(tmp_path))
    assert finding.level is Level.PROBLEM
    assert "unset SPARK_HOME" in finding.next_steps[0]


def test_python_for_sparks_workers_is_only_worth_knowing() -> None:
    assert _spark(PYSPARK_PYTHON="/usr/bin/python3").level is Level.NOTE
