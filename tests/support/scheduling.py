"""Which tests run in the same pytest-xdist worker: those of one file, and those of files that share a Spark."""

from typing import Final

from typing_extensions import override
from xdist.scheduler.loadfile import LoadFileScheduling

SPARK_FILES: Final = frozenset(
    {"tests/e2e/test_spark_pipeline.py", "tests/e2e/test_walk.py", "tests/integration/test_spark_sink.py"}
)
"""Files that use the `spark_worker` of the session: in two workers, Spark would start twice."""


class SharedSparkScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """As `--dist loadfile`, but the files that share a Spark count as one."""

    @override
    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "files that share a Spark" if file in SPARK_FILES else file
