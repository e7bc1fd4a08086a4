"""The SQL service as its users meet it: a process that speaks ksqlDB's REST API, with an engine of its own."""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx2
import psutil

from streams.settings import SparkSettings
from tests.support.spark_engine import engine_process, family_of
from tests.support.streams_process import StreamsProcess

_CALL_S: Final = 240.0


class StatementFailed(AssertionError):
    """The service refused a statement; the message is its answer."""


class StreamsService(StreamsProcess):
    """One server whose queries begin with the first record; what it keeps is in its directory."""

    def __init__(
        self, directory: Path, *, bootstrap: str, registry: str = "", settings: Mapping[str, str] | None = None
    ) -> None:
        own = {
            "ksql.service.id": "default_",
            "ksql.extension.dir": str(directory / "functions"),
            "ksql.streams.auto.offset.reset": "earliest",
        }
        super().__init__(directory, bootstrap=bootstrap, registry=registry, settings={**own, **(settings or {})})
        self.data = directory / "spark"

    def ksql(self, text: str, *, properties: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Carry out statements; StatementFailed with the answer if they are refused."""
        body = {"ksql": text, "streamsProperties": dict(properties or {})}
        answer = httpx2.post(f"{self.url}/ksql", json=body, timeout=_CALL_S)
        if not answer.is_success:
            raise StatementFailed(answer.text)
        found: list[dict[str, Any]] = answer.json()
        return found

    def query(self, text: str, *, properties: Mapping[str, str] | None = None) -> list[list[Any]]:
        """The rows of a query that ends."""
        body = {"sql": text, "properties": dict(properties or {})}
        headers = {"accept": "application/json"}
        answer = httpx2.post(f"{self.url}/query-stream", json=body, headers=headers, timeout=_CALL_S)
        if not answer.is_success:
            raise StatementFailed(answer.text)
        return [row for row in answer.json()[1:] if isinstance(row, list)]

    def push(
        self, text: str, *, until: Callable[[list[list[Any]]], bool], properties: Mapping[str, str] | None = None
    ) -> list[list[Any]]:
        """The rows of a query that goes on, until they are enough; the query is closed then."""
        body = {"sql": text, "properties": dict(properties or {})}
        headers = {"accept": "application/vnd.ksqlapi.delimited.v1"}
        rows: list[list[Any]] = []
        deadline = time.monotonic() + _CALL_S
        with httpx2.stream("POST", f"{self.url}/query-stream", json=body, headers=headers, timeout=_CALL_S) as answer:
            if not answer.is_success:
                raise StatementFailed(answer.read().decode())
            for line in answer.iter_lines():
                found = json.loads(line) if line.strip() else None
                if isinstance(found, list):
                    rows.append(found)
                elif isinstance(found, dict) and "error_code" in found:
                    raise StatementFailed(line)
                if until(rows):
                    return rows
                assert time.monotonic() < deadline, f"{text} gave only {rows}"
        raise AssertionError(f"{text} ended with only {rows}")

    def engine(self) -> psutil.Process | None:
        """The process of the engine; None when there is none now."""
        return engine_process(SparkSettings.among(self.settings))

    def java(self) -> psutil.Process | None:
        """Spark's Java process, the driver."""
        return next((process for process in self._below() if _name(process).startswith("java")), None)

    def python_workers(self) -> list[psutil.Process]:
        """Python processes that Spark has started: those that read and write records, and those that plan reading."""
        return [process for process in self._below() if "python" in _name(process) and "pyspark" in _command(process)]

    def engine_log(self, lines: int = 40) -> str:
        """The end of what engine and Spark have written."""
        told = ""
        for file in sorted(self.data.glob("*.log")):
            told += f"--- {file.name}\n" + "\n".join(file.read_text(errors="replace").splitlines()[-lines:]) + "\n"
        return told

    def _below(self) -> list[psutil.Process]:
        engine = self.engine()
        return [process for process in family_of(engine) if process != engine] if engine is not None else []


def _name(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return process.name()
    return ""


def _command(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""
