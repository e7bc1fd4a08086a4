"""A user's notebook: a process of its own that attaches to Spark Connect with Spark's own client, and asks in SQL.

`python -m tests.support.spark_notebook sc://host:port` reads statements as a JSON list and writes what they give.
"""

import json
import os
import subprocess
import sys
from typing import Any, Final

from tests.support.service import REPOSITORY

_TIMEOUT_S: Final = 240.0


def ask_spark(url: str, token: str, *statements: str) -> list[list[dict[str, Any]]]:
    """What each statement gives: rows by column name, values that JSON does not have as text."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.spark_notebook", url]
    answer = subprocess.run(
        command,
        input=json.dumps(statements),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        cwd=REPOSITORY,
        env={**os.environ, "SPARK_CONNECT_AUTHENTICATE_TOKEN": token},
        check=False,
    )
    assert answer.returncode == 0, answer.stderr[-4000:]
    rows: list[list[dict[str, Any]]] = json.loads(answer.stdout.splitlines()[-1])
    return rows


def main(url: str) -> None:
    """Run the statements."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(url).getOrCreate()
    answers = [[row.asDict(recursive=True) for row in session.sql(text).collect()] for text in json.load(sys.stdin)]
    sys.stdout.write(json.dumps(answers, default=str) + "\n")
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
