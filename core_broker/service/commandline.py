"""The command line of every service: `--config FILE` and repeated `--set key=value`, plus the environment.

Parsed by hand, because importing a command-line library would delay the start of a service noticeably.
"""

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from core_broker.service import logs
from core_broker.service.properties import gather
from core_broker.service.settings import ServiceSettings, SettingsError

log = logging.getLogger(__name__)

S = TypeVar("S", bound=ServiceSettings)

EXIT_USAGE = 2


class ServiceArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed command line."""

    config: Path | None = None
    assignments: tuple[str, ...] = ()


def parse_arguments(arguments: Sequence[str]) -> ServiceArguments | None:
    """Read `--config FILE` and `--set key=value`; None when there is anything else, such as `--help`."""
    config: Path | None = None
    assignments: list[str] = []
    remaining = [part for argument in arguments for part in _split(argument)]
    while remaining:
        name = remaining.pop(0)
        if name not in ("--config", "-c", "--set") or not remaining:
            return None
        value = remaining.pop(0)
        if name == "--set":
            assignments.append(value)
        else:
            config = Path(value)
    return ServiceArguments(config=config, assignments=tuple(assignments))


def start(
    settings_type: type[S],
    run: Callable[[S], int],
    arguments: ServiceArguments,
    *,
    environment: Mapping[str, str],
    prefix: str,
) -> int:
    """Read the settings, set up the logs and run the service; invalid settings are printed to stderr, exit code 2."""
    try:
        values = gather(
            file=arguments.config, environment=environment, prefix=prefix, assignments=arguments.assignments
        )
        settings = settings_type.parse(values)
    except SettingsError as error:
        sys.stderr.write(refusal(error))
        return EXIT_USAGE
    logs.configure(level=settings.logging_level, style=settings.logging_format)
    for key, reason in settings_type.ignored(values).items():
        log.warning("setting has no effect", extra={"key": key, "reason": reason})
    return run(settings)


def refusal(error: SettingsError) -> str:
    """The text shown to an operator when settings are refused."""
    count = "This setting was" if len(error.problems) == 1 else f"These {len(error.problems)} settings were"
    lines = "".join(f"  {problem}\n" for problem in error.problems)
    return f"{count} refused:\n{lines}"


def _split(argument: str) -> list[str]:
    """Split `--set=a=b` into `--set` and `a=b`."""
    for name in ("--config=", "--set="):
        if argument.startswith(name):
            return [name[:-1], argument.removeprefix(name)]
    return [argument]
