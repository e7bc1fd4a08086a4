"""`python -m tests.support.line_host FD`: a host process whose tasks write lines."""

from connect.executors.hosts.__main__ import main
from tests.support.line_task import LineTask, line_services

if __name__ == "__main__":
    main(task_class=LineTask, connect=line_services)
