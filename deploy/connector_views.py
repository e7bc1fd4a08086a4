"""Connectors as tables: states in colour, and why something failed in one line."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.text import Text

_COLOURS: Final = {
    "RUNNING": "green",
    "PAUSED": "yellow",
    "STOPPED": "yellow",
    "UNASSIGNED": "yellow",
    "RESTARTING": "yellow",
    "FAILED": "bold red",
}
Status = Mapping[str, Any]


def state_text(state: str) -> "Text":
    """A state in its colour."""
    from rich.text import Text

    return Text(state, style=_COLOURS.get(state, ""))


def tasks_text(tasks: Iterable[Status]) -> "Text":
    """`2 RUNNING, 1 FAILED`, the worst first."""
    from rich.text import Text

    states = [str(task["state"]) for task in tasks]
    order = sorted(set(states), key=list(_COLOURS)[::-1].index) if set(states) <= set(_COLOURS) else sorted(set(states))
    parts = [Text(f"{states.count(state)} {state}", style=_COLOURS.get(state, "")) for state in order]
    return Text(", ").join(parts) if parts else Text("–", style="dim")


def listed(name: str, connector: Status) -> dict[str, Any]:
    """What `list` tells of a connector."""
    status, info = connector.get("status") or {}, connector.get("info") or {}
    own = status.get("connector") or {}
    return {
        "name": name,
        "type": info.get("type") or status.get("type") or "unknown",
        "state": own.get("state", "UNASSIGNED"),
        "tasks": [{"id": task["id"], "state": task["state"]} for task in status.get("tasks", [])],
        "worker": own.get("worker_id", ""),
        "class": info.get("config", {}).get("connector.class", ""),
    }


def print_list(connectors: Iterable[Mapping[str, Any]]) -> None:
    """All connectors, one to a line."""
    from deploy.output import table

    rows = [
        (
            item["name"],
            item["type"],
            state_text(item["state"]),
            tasks_text(item["tasks"]),
            item["worker"],
            item["class"].rpartition(".")[2],
        )
        for item in connectors
    ]
    table("", ["Connector", "Type", "State", "Tasks", "Worker", "Class"], rows)


def print_status(status: Status, *, with_traces: bool) -> None:
    """A connector and its tasks; whole traces below, if they are wanted."""
    from deploy.output import table
    from deploy.traces import summary

    parts = _parts(status)
    columns = ["", "State", "Worker", "Why"]
    rows = [
        (title, state_text(part["state"]), part["worker_id"], "" if with_traces else summary(part.get("trace")))
        for title, part in parts
    ]
    if not any(row[3] for row in rows):
        columns, rows = columns[:3], [row[:3] for row in rows]  # type: ignore[misc] # a column less
    table(f"{status['name']}  ({status['type']})", columns, rows)
    if with_traces:
        _print_traces(parts)


def print_failures(status: Status) -> None:
    """Only what failed, and why."""
    from deploy.output import failure
    from deploy.traces import summary

    for title, part in _parts(status):
        if part["state"] == "FAILED":
            failure(f"{status['name']} {title} has failed: {summary(part.get('trace')) or 'nobody knows why'}")


def _print_traces(parts: list[tuple[str, Status]]) -> None:
    from rich.markup import escape

    from deploy.output import note, out
    from deploy.traces import printable

    traced = [(title, part["trace"]) for title, part in parts if part.get("trace")]
    for title, trace in traced:
        out.print(f"[bold]{escape(title)}[/]\n{escape(printable(trace.rstrip()))}\n")
    if not traced:
        note("nothing has failed: there are no traces")


def _parts(status: Status) -> list[tuple[str, Status]]:
    return [("connector", status["connector"]), *((f"task {task['id']}", task) for task in status["tasks"])]
