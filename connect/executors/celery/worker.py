"""`python -m connect.executors.celery.worker [--config FILE] [--set key=value]... [-- options of celery worker]`."""

import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from connect.settings import ConnectSettings
from core_broker.service.commandline import EXIT_USAGE, parse_arguments, start
from core_broker.service.lifecycle import announce

if TYPE_CHECKING:
    from connect.runtime.tasks.running_task import RunningTask
    from connect.runtime.tasks.services import LazyServices


_USAGE = (
    "usage: python -m connect.executors.celery.worker [--config FILE] [--set key=value]... "
    "[-- --concurrency N and other options of `celery worker`]\n"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the settings as a Connect worker does, and run as a Celery worker."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    split = given.index("--") if "--" in given else len(given)
    own, options = given[:split], given[split + 1 :]
    parsed = parse_arguments(own)
    if parsed is None:
        sys.stderr.write(_USAGE)
        return EXIT_USAGE
    return start(ConnectSettings, partial(run, options=options), parsed, environment=os.environ, prefix="CONNECT_")


def run(
    settings: ConnectSettings,
    *,
    options: Sequence[str] = (),
    services: "LazyServices | None" = None,
    task_class: "type[RunningTask] | None" = None,
) -> int:
    """Run as a Celery worker until it is stopped; options are those of `celery worker`."""
    from celery import signals  # type: ignore[import-untyped]  # it ships no types

    from connect.executors.celery.tasks import create_app, serve
    from connect.runtime.tasks.running_task import RunningTask
    from connect.runtime.tasks.services import LazyServices

    app = serve(create_app(settings), services or LazyServices(settings), task_class or RunningTask)

    def ready(sender: WorkController, **_: object) -> None:
        announce("connect-worker", {"name": sender.hostname, "queue": settings.celery_queue})

    signals.worker_ready.connect(ready, weak=False)
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    return int(app.worker_main(["--quiet", "worker", *quiet, *options]) or 0)


class WorkController(Protocol):
    """Celery's worker object."""

    hostname: str


if __name__ == "__main__":
    sys.exit(main())
