import subprocess
import sys
from pathlib import Path

import pytest

from streams.spark.engine.executors import LIBRARIES, describe_problems, zip_packages
from streams.spark.engine.session import PACKAGE_ROOT


@pytest.mark.processes
def test_all_that_tasks_need_of_ours_is_packed_and_can_be_imported(tmp_path: Path) -> None:
    archive = zip_packages(PACKAGE_ROOT, tmp_path / "caudal.zip")
    code = "import streams.spark.topics.source, connectors.spark.query, pyspark_caudal; print(streams.__file__)"
    command = [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert answer.stdout.startswith(str(archive)), answer.stderr


def test_tests_and_tools_are_not_packed(tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(zip_packages(PACKAGE_ROOT, tmp_path / "caudal.zip")) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".py")} == {
        "core_broker",
        "schema_registry",
        "connect",
        "streams",
        "connectors",
    }


def test_what_executors_lack_is_reported_with_host_and_what_to_install() -> None:
    findings = [("host-1", "3.11.7", ()), ("host-2", "3.11.9", ("google.protobuf", "pyarrow"))] * 3
    assert describe_problems(findings) == [
        "Executors on host-2 (Python 3.11.9) lack libraries; run there:  pip install protobuf pyarrow"
    ]


def test_everything_that_is_asked_for_is_here() -> None:
    import importlib.util

    assert [module for module in LIBRARIES if importlib.util.find_spec(module) is None] == []
