"""`python -m tests.support.line_worker WORLD [--set key=value]... -- [options]`: a Celery worker that writes lines."""

import sys

from connect.executors.celery.worker import run
from connect.executors.task_factory import TaskFactory
from connect.settings import ConnectSettings
from core_broker.service.properties import from_assignments
from tests.support.line_task import TASK_TYPE


def main() -> int:
    """Be that worker."""
    split = sys.argv.index("--")
    pairs = [word for word in sys.argv[2:split] if word != "--set"]
    settings = ConnectSettings.parse(from_assignments(pairs))
    factory = TaskFactory(settings, task_type=TASK_TYPE, world=sys.argv[1])
    return run(settings, options=sys.argv[split + 1 :], factory=factory)


if __name__ == "__main__":
    sys.exit(main())
