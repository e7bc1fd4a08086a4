"""Checks the health of a service on this machine: `python -m deploy.health_check [SERVICE [--config FILE] ...]`.

For health checks of containers and units. The address comes from the settings of the service: the same file, variables
and `--set`. Without a service, it checks the one that the container runs. With `--wait SECONDS` before the service, it
repeats the check until the service is healthy.
"""

import http.client
import os
import ssl
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
    """Exit code 0 if the service is healthy (or has no health check), 1 if not, 2 for wrong arguments."""
    given = list(arguments)
    wait_s = 0.0
    if given[:1] == ["--wait"] and len(given) > 1 and given[1].isdigit():
        wait_s = float(given[1])
        del given[:2]
    command = given or caudal_arguments(_FIRST_PROCESS.read_bytes())
    if not given and (not command or command[0] not in BY_NAME):
        return 0  # a tool, or a Celery worker, which have no health check
    try:
        values = _settings(command, environment)
    except SettingsError as error:
        sys.stderr.write(refusal(error))
        return EXIT_USAGE
    if values is None:
        sys.stderr.write(_USAGE)
        return EXIT_USAGE
    url, tls = _address(BY_NAME[command[0]], values), _tls(values)
    deadline = time.monotonic() + wait_s
    while (problem := _check(url, tls)) is not None:
        if time.monotonic() >= deadline:
            sys.stderr.write(f"{url}: {problem}\n")
            return 1
        time.sleep(_PAUSE_S)
    return 0


def caudal_arguments(process: bytes) -> list[str]:
    """The arguments of `caudal` on the command line of a process; empty if it is another program."""
    words = process.decode(errors="replace").rstrip("\0").split("\0")
    index = next((number for number, word in enumerate(words) if Path(word).name == "caudal"), len(words))
    return words[index + 1 :]


def address(command: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """The health check's URL for the service of a command; None if the command is not understood."""
    values = _settings(command, environment)
    return None if values is None else _address(BY_NAME[command[0]], values)


def _settings(command: Sequence[str], environment: Mapping[str, str]) -> dict[str, str] | None:
    service = BY_NAME.get(command[0])
    parsed = parse_arguments(command[1:])
    if service is None or parsed is None:
        return None
    return gather(
        file=parsed.config,
        environment=environment,
        prefix=service.environment_prefix,
        assignments=parsed.assignments,
    )


def _address(service: Service, values: Mapping[str, str]) -> str:
    key = "listeners" if service.metrics_port is None else "metrics.listener"
    listener = urlsplit(values.get(key, "").split(",")[0])
    port = listener.port or service.metrics_port or service.port
    scheme = "https" if listener.scheme == "https" else "http"
    host = listener.hostname if listener.hostname not in (None, "0.0.0.0", "::") else "localhost"
    return f"{scheme}://{f'[{host}]' if host and ':' in host else host}:{port}/health"


def _tls(values: Mapping[str, str]) -> ssl.SSLContext:
    """Shows the service its own certificate, in case it asks for one, and does not look at the name in the other's: the
    request stays on this machine, and holds no secret."""
    context = ssl._create_unverified_context()  # noqa: SLF001 - the documented way
    if certificate := values.get("ssl.certificate.location") or values.get("ssl.keystore.location"):
        # Without a password OpenSSL would ask for it on the terminal.
        password = values.get("ssl.key.password", "")
        with suppress(OSError):  # PKCS12, for one; then it is shown none
            context.load_cert_chain(certificate, values.get("ssl.key.location"), password=lambda: password)
    return context


def _check(url: str, tls: ssl.SSLContext) -> str | None:
    """What is wrong; None if the service is healthy."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=_ANSWER_TIMEOUT_S, context=tls)
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
