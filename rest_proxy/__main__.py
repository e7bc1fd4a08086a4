"""`python -m rest_proxy [--config FILE] [--set key=value]...`: the same REST proxy as `caudal rest-proxy`."""

import os
import sys

from core_broker.service.commandline import EXIT_USAGE, parse_arguments, start
from rest_proxy.app import run
from rest_proxy.settings import ProxySettings


def main() -> int:
    """Read the settings from file, environment and command line, and run a REST proxy with them."""
    arguments = parse_arguments(sys.argv[1:])
    if arguments is None:
        sys.stderr.write("usage: python -m rest_proxy [--config FILE] [--set key=value]...\n")
        return EXIT_USAGE
    return start(ProxySettings, run, arguments, environment=os.environ, prefix="KAFKA_REST_")


__all__ = ["main", "run"]

if __name__ == "__main__":
    sys.exit(main())
