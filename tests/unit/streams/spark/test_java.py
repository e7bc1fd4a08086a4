from pathlib import Path

import pytest

from streams.errors import JavaMissing
from streams.spark.java import find_java
from tests.support.made_up_java import made_up_java

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    ("expected", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "25.0.1-ea" 2025-10-21 LTS', 25),
    ],
)
def test_a_java_of_the_right_age_is_found(tmp_path: Path, expected: str, version: int) -> None:
    found = find_java(made_up_java(tmp_path, f"echo '{expected}' >&2"))
    assert (found.path, found.version) == (tmp_path / "bin" / "java", version)


def test_without_java_home_it_is_looked_for_on_the_path(tmp_path: Path) -> None:
    made_up_java(tmp_path)
    found = find_java({"PATH": f"/nowhere:{tmp_path / 'bin'}"})
    assert found.path == tmp_path / "bin" / "java"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "is Java 11; Spark needs Java 17 or newer"),
        (
            """case "$1" in --add*) echo "Unknown: $1" >&2; exit 1;; esac; echo 'java version "1.8.0_402"' >&2""",
            "is Java 8; Spark needs Java 17 or newer",
        ),
        (
            """case "$1" in --add*) echo "Module jdk.incubator.vector not found" >&2; exit 1;; esac
            echo 'openjdk version "21.0.1"' >&2""",
            "is Java 21, but Spark cannot run on it: it lacks the module jdk.incubator.vector",
        ),
        ("echo hello", "does not report its version; it printed: hello"),
        ("exit 1", "does not report its version; it printed: nothing"),
    ],
)
def test_a_java_that_spark_cannot_run_on_is_refused_with_how_to_install_one(
    tmp_path: Path, script: str, reason: str
) -> None:
    with pytest.raises(JavaMissing) as refusal:
        find_java(made_up_java(tmp_path, script))
    assert reason in str(refusal.value)
    assert "apt-get install openjdk-17-jre-headless" in str(refusal.value)


def test_no_java_at_all_is_reported_with_how_to_install_one(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match="there is no Java on this machine(.|\n)*brew install openjdk"):
        find_java({"PATH": str(tmp_path)})


def test_a_wrong_java_home_is_reported(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match=f"JAVA_HOME is {tmp_path}, but there is no bin/java in it"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin"})


def test_a_java_that_cannot_be_run_is_reported(tmp_path: Path) -> None:
    environment = made_up_java(tmp_path, "")
    (tmp_path / "bin" / "java").chmod(0o600)
    with pytest.raises(JavaMissing, match="cannot be run"):
        find_java(environment)
