"""`python -m connect [--config FILE] [--set key=value]...`: the same worker as `caudal connect`."""

import os
import sys
from collections.abc import Sequence

from connect.settings import ConnectSettings
from core_broker.service.commandline import EXIT_USAGE, parse_arguments, start


def main() -> int:
    """Read the settings from file, environment and command line, and run a worker with them."""
    arguments = parse_arguments(sys.argv[1:])
    if arguments is None:
        sys.stderr.write("usage: python -m connect [--config FILE] [--set key=value]...\n")
        return EXIT_USAGE
    return start(ConnectSettings, run, arguments, environment=os.environ, prefix="CONNECT_")


def run(settings: ConnectSettings) -> int:
    """Run a worker until it is stopped."""
    from connect.app import run as run_worker  # the Celery worker below does not need its web server

    return run_worker(settings)


def run_tasks(settings: ConnectSettings, *, options: Sequence[str] = ()) -> int:
    """Run as a Celery worker until it is stopped; options are those of `celery worker`."""
    from connect.executors.celery.worker import run as run_celery_worker

    return run_celery_worker(settings, options=options)


if __name__ == "__main__":
    sys.exit(main())
