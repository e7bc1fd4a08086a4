"""`python -m streams [--config FILE] [--set key=value]...`: the same SQL service as `caudal streams`."""

import os
import sys

from core_broker.service.commandline import EXIT_USAGE, parse_arguments, start
from streams.app import run
from streams.settings import StreamsSettings


def main() -> int:
    """Read the settings from file, environment and command line, and run the service with them."""
    arguments = parse_arguments(sys.argv[1:])
    if arguments is None:
        sys.stderr.write("usage: python -m streams [--config FILE] [--set key=value]...\n")
        return EXIT_USAGE
    return start(StreamsSettings, run, arguments, environment=os.environ, prefix="KSQL_")


__all__ = ["main", "run"]

if __name__ == "__main__":
    sys.exit(main())
