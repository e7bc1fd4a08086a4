"""`python -m schema_registry [--config FILE] [--set key=value]...`: the same registry as `caudal registry`."""

import os
import sys

from core_broker.service.commandline import EXIT_USAGE, parse_arguments, start
from schema_registry.app import run
from schema_registry.settings import RegistrySettings


def main() -> int:
    """Read the settings from file, environment and command line, and run a registry with them."""
    arguments = parse_arguments(sys.argv[1:])
    if arguments is None:
        sys.stderr.write("usage: python -m schema_registry [--config FILE] [--set key=value]...\n")
        return EXIT_USAGE
    return start(RegistrySettings, run, arguments, environment=os.environ, prefix="SCHEMA_REGISTRY_")


__all__ = ["main", "run"]

if __name__ == "__main__":
    sys.exit(main())
