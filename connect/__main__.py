"""`python -m connect [--config FILE] [--set key=value]...`: the same worker as `caudal connect`."""

import os
import sys

from connect.app import run
from connect.settings import ConnectSettings
from core_broker.service.commandline import EXIT_USAGE, parse_arguments, start


def main() -> int:
    """Read the settings from file, environment and command line, and run a worker with them."""
    arguments = parse_arguments(sys.argv[1:])
    if arguments is None:
        sys.stderr.write("usage: python -m connect [--config FILE] [--set key=value]...\n")
        return EXIT_USAGE
    return start(ConnectSettings, run, arguments, environment=os.environ, prefix="CONNECT_")


__all__ = ["main", "run"]

if __name__ == "__main__":
    sys.exit(main())
