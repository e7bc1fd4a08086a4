"""Waiting until the tasks of a connector run."""

import time
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from deploy.connect_client import ConnectClient

Verdict = Literal["running", "failed", "waiting"]

_PAUSE_SECONDS: Final = 0.2
_STEADY_SECONDS: Final = 1.5
"""Tasks run before their first record makes them fail, and old ones until the new configuration has reached them."""


def wait_until_running(client: "ConnectClient", name: str, *, seconds: float) -> bool:
    """Wait until all tasks run steadily, one has failed, or the time is over; says how it ended."""
    from deploy.output import waiting

    deadline = time.monotonic() + seconds
    since: float | None = None
    with waiting(f"waiting for the tasks of {name}"):
        while True:
            status = _status(client, name)
            verdict = "waiting" if status is None else judged(status)
            now = time.monotonic()
            since = (since or now) if verdict == "running" else None
            is_steady = since is not None and now - since >= _STEADY_SECONDS
            if is_steady or verdict == "failed" or now >= deadline:
                break
            time.sleep(_PAUSE_SECONDS)
    _tell(name, status, verdict, seconds=seconds)
    return verdict == "running"


def judged(status: dict[str, Any]) -> Verdict:
    """What the states of a connector and its tasks mean for somebody who waits."""
    states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
    if "FAILED" in states:
        return "failed"
    return "running" if len(states) > 1 and set(states) == {"RUNNING"} else "waiting"


def _status(client: "ConnectClient", name: str) -> dict[str, Any] | None:
    from deploy.connect_errors import ConnectorNotFound

    try:
        return client.status(name)
    except ConnectorNotFound:
        return None  # its first status is not written yet


def _tell(name: str, status: dict[str, Any] | None, verdict: Verdict, *, seconds: float) -> None:
    from rich.markup import escape

    from deploy.connector_views import print_failures
    from deploy.output import done, failure, plural

    shown = f"caudal connector status {escape(name)}"
    if status is None or verdict == "waiting":
        failure(f"{name} does not run after {seconds:g} s", [f"see how far it is:  [bold]{shown}[/]"])
    elif verdict == "running":
        done(f"{plural(len(status['tasks']), 'task')} of [bold]{escape(name)}[/] running")
    else:
        print_failures(status)
        failure(f"{name} does not run", [f"see the whole trace:  [bold]{shown} --trace[/]"])
