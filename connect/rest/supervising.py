"""What the REST API asks of the worker behind it. Everything may block, and is called from worker threads."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from connect.runtime.models import ConnectorInfo, ConnectorStatus, Target, TaskInfo, TaskState
from connect.runtime.redrive.pages import LetterPage, Redriven, Selection

Offset = Mapping[str, Any]
"""`{"partition": {...}, "offset": {...} or None}`"""


class Supervising(Protocol):
    """Runs connectors. Raises WorkerError; NotLeader when another worker must be asked."""

    def connectors(self) -> Sequence[str]:
        """The names of all connectors."""

    def info(self, name: str) -> ConnectorInfo:
        """A connector as it was configured."""

    def config(self, name: str) -> Mapping[str, str]:
        """Its configuration, with placeholders as they were given."""

    def status(self, name: str) -> ConnectorStatus:
        """How a connector and its tasks fare."""

    def tasks(self, name: str) -> Sequence[TaskInfo]:
        """Its tasks and their configurations."""

    def task_status(self, name: str, task: int) -> TaskState:
        """How one task fares."""

    def create(
        self,
        name: str,
        config: Mapping[str, str | None],
        *,
        initial_state: Target = Target.STARTED,
        initial_offsets: Sequence[Offset] | None = None,
    ) -> ConnectorInfo:
        """Take a new connector; Conflict when there is one of that name."""

    def put(self, name: str, config: Mapping[str, str | None]) -> tuple[bool, ConnectorInfo]:
        """Create or change a connector; True when it is new."""

    def patch(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        """Change some keys; None removes one."""

    def delete(self, name: str) -> None:
        """Stop and forget a connector."""

    def pause(self, name: str) -> None:
        """Let its tasks rest."""

    def resume(self, name: str) -> None:
        """Let them work again."""

    def stop(self, name: str) -> None:
        """End its tasks, keep its configuration."""

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus | None:
        """Start the connector again, and its tasks if wanted; None when both flags are False."""

    def restart_task(self, name: str, task: int) -> None:
        """Start one task again."""

    def topics(self, name: str) -> Sequence[str]:
        """The topics that it has used."""

    def reset_topics(self, name: str) -> None:
        """Forget them."""

    def offsets(self, name: str) -> Sequence[Offset]:
        """How far it is."""

    def alter_offsets(self, name: str, offsets: Sequence[Offset]) -> str:
        """Change how far it is; gives what is told about it."""

    def reset_offsets(self, name: str) -> str:
        """Let it begin anew; gives what is told about it."""

    def cluster_id(self) -> str:
        """The id of the Kafka cluster."""

    def health(self) -> tuple[str, str]:
        """healthy, starting or unhealthy, and what is to be said about it."""

    def set_logger_level(self, namespace: str, level: str) -> None:
        """Change the level of loggers in every worker."""


class DeadLetters(Protocol):
    """Reads dead letters, and gives them to their sinks again."""

    def page(
        self,
        name: str,
        *,
        limit: int,
        partition: int | None = None,
        offset: int | None = None,
        stage: str | None = None,
        exception: str | None = None,
    ) -> LetterPage:
        """The first dead letters that are meant, by partition and offset."""

    def redrive(self, name: str, selection: Selection, *, max_records: int, dry_run: bool) -> Redriven:
        """Give those that are meant to the sink again; `dry_run` only tells which."""
