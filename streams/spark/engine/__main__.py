"""`python -m streams.spark.engine [--config FILE] [--set key=value]... [--background]`: as `caudal spark engine`."""

import os
import sys

from core_broker.service.commandline import EXIT_USAGE, parse_arguments, refusal
from core_broker.service.settings import SettingsError
from streams.settings import SparkSettings

BACKGROUND = "--background"


def main(arguments: list[str]) -> int:
    """Read the settings and run the engine; in the background it ends when it is no longer used."""
    parsed = parse_arguments([argument for argument in arguments if argument != BACKGROUND])
    if parsed is None:
        usage = "usage: python -m streams.spark.engine [--config FILE] [--set key=value]... [--background]\n"
        sys.stderr.write(usage)
        return EXIT_USAGE
    try:
        settings = SparkSettings.read(file=parsed.config, environment=os.environ, assignments=parsed.assignments)
    except SettingsError as error:
        sys.stderr.write(refusal(error))
        return EXIT_USAGE
    from streams.spark.engine.host import run

    return run(settings, is_background=BACKGROUND in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
