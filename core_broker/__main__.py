"""`python -m core_broker [--config FILE] [--set key=value]...`: the same broker as `caudal broker`."""

import os
import sys

from core_broker.broker import run
from core_broker.cluster.bootstrap_file import add_first_user
from core_broker.service.commandline import EXIT_USAGE, parse_arguments, start
from core_broker.settings import BrokerSettings


def main() -> int:
    """Read the settings from file, environment and command line, and run a broker with them."""
    arguments = parse_arguments(sys.argv[1:])
    if arguments is None:
        sys.stderr.write("usage: python -m core_broker [--config FILE] [--set key=value]...\n")
        return EXIT_USAGE
    return start(BrokerSettings, run, arguments, environment=os.environ, prefix="KAFKA_")


__all__ = ["add_first_user", "main", "run"]

if __name__ == "__main__":
    sys.exit(main())
