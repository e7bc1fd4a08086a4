"""Tests that share an expensive service run in the same worker."""

from tests.support.scheduling import SPARK_FILES
from tests.support.service import REPOSITORY


def test_files_that_run_in_one_worker_are_those_that_ask_for_the_shared_spark() -> None:
    asking = {
        str(path.relative_to(REPOSITORY))
        for path in (REPOSITORY / "tests").rglob("test_*.py")
        if "spark_worker: SparkWorker" in path.read_text()
    } - {"tests/project/test_scheduling.py"}
    assert asking == SPARK_FILES
