"""Asks a service on this machine how it is: `python -m deploy.health_check [SERVICE [--config FILE] ...]`.

For health checks of containers and units. The address comes from the settings that the service itself was given: the
same file, variables and `--set`. Without a service: the one that the container was started for. `--wait SECONDS`, in
front of it, asks until all is well.
"""

import http.client
import os
import ssl
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from core_broker.service.commandline import EXIT_USAGE, parse_arguments, refusal
from core_broker.service.properties import gather
from core_broker.service.settings import SettingsError
from deploy.stack import BY_NAME, Service

_FIRST_PROCESS: Final = Path("/proc/1/cmdline")
_USAGE: Final = (
    "usage: python -m deploy.health_check [--wait SECONDS] "
    f"[{'|'.join(BY_NAME)} [--config FILE] [--set key=value]...]\n"
)
_ANSWER_TIMEOUT_S: Final = 5.0
_PAUSE_S: Final = 0.2


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Exit code 0 when the service is well (or is none that can be asked), 1 when it is not, 2 for wrong arguments."""
    given = list(arguments)
    wait_s = 0.0
    if given[:1] == ["--wait"] and len(given) > 1 and given[1].isdigit():
        wait_s = float(given[1])
        del given[:2]
    command = given or caudal_arguments(_FIRST_PROCESS.read_bytes())
    if not given and (not command or command[0] not in BY_NAME):
        return 0  # a tool, or a Celery worker: that it runs is all there is to know
    try:
        url = address(command, environment)
    except SettingsError as error:
        sys.stderr.write(refusal(error))
        return EXIT_USAGE
    if url is None:
        sys.stderr.write(_USAGE)
        return EXIT_USAGE
    return _ask(url, wait_s)


def caudal_arguments(process: bytes) -> list[str]:
    """What stands behind `caudal` on the command line of a process; empty when it is another program."""
    words = process.decode(errors="replace").rstrip("\0").split("\0")
    place = next((number for number, word in enumerate(words) if Path(word).name == "caudal"), len(words))
    return words[place + 1 :]


def address(command: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """Where the service of a command tells its health; None when the command is not understood."""
    service = BY_NAME.get(command[0])
    parsed = parse_arguments(command[1:])
    if service is None or parsed is None:
        return None
    values = gather(
        file=parsed.config,
        environment=environment,
        prefix=service.environment_prefix,
        assignments=parsed.assignments,
    )
    return f"{_origin(service, values)}/health"


def _origin(service: Service, values: Mapping[str, str]) -> str:
    key = "listeners" if service.metrics_port is None else "metrics.listener"
    listener = urlsplit(values.get(key, "").split(",")[0])
    port = listener.port or service.metrics_port or service.port
    scheme = "https" if listener.scheme == "https" else "http"
    host = listener.hostname if listener.hostname not in (None, "0.0.0.0", "::") else "localhost"
    return f"{scheme}://{f'[{host}]' if host and ':' in host else host}:{port}"


def _ask(url: str, wait_s: float) -> int:
    deadline = time.monotonic() + wait_s
    while (answer := _answer(url)) is not None:
        if time.monotonic() >= deadline:
            sys.stderr.write(f"{url}: {answer}\n")
            return 1
        time.sleep(_PAUSE_S)
    return 0


def _answer(url: str) -> str | None:
    """What is wrong; None when all is well."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        # It is this machine that is asked: whether the certificate bears the name "localhost" does not matter.
        trusting = ssl._create_unverified_context()  # noqa: SLF001 - the documented way
        connection = http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=_ANSWER_TIMEOUT_S, context=trusting
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=_ANSWER_TIMEOUT_S)
    try:
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        return None if answer.status == http.HTTPStatus.OK else f"{answer.status} {answer.read(500).decode()}"
    except (OSError, http.client.HTTPException) as error:
        return str(error)
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
