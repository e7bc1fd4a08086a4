"""`python -m tests.support.line_worker KIND [--set key=value]... -- [options]`: a Celery worker that writes lines."""

import sys

from connect.executors.celery.worker import run
from connect.runtime.tasks.services import LazyServices
from connect.settings import ConnectSettings
from core_broker.service.properties import from_assignments
from tests.support.line_task import LineTask, deadly_services, line_services


def main() -> int:
    """Be that worker."""
    split = sys.argv.index("--")
    pairs = [word for word in sys.argv[2:split] if word != "--set"]
    settings = ConnectSettings.parse(from_assignments(pairs))
    connect = deadly_services if sys.argv[1] == "deadly" else line_services
    services = LazyServices(settings, connect=connect)
    return run(settings, options=sys.argv[split + 1 :], services=services, task_class=LineTask)


if __name__ == "__main__":
    sys.exit(main())
