"""The services of the running platform: do they live, do they answer, how often did they have to be started again?"""

from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import httpx2

from deploy.doctor.finding import Context, Finding, note, ok, problem, warning
from deploy.views.text import plural

if TYPE_CHECKING:
    from deploy.launcher.state import ServiceState

_VERSION_PATHS: Final = {"registry": ("/v1/metadata/version", "version"), "connect": ("/", "commit")}
"""Where services tell their version, and under which name."""


def platform(context: Context) -> Iterator[Finding]:
    """Does a platform run in the data folder?"""
    found = context.platform
    if found is None:
        yield note("Platform", f"none runs in {context.data}", "start one:  caudal up")
        return
    yield ok("Platform", f"{found.state} in {found.data}, process {found.pid}")
    for name, address in found.elsewhere.items():
        yield note("Platform", f"its {name} is another's: {address}")


def service(context: Context, *, name: str) -> Iterator[Finding]:
    """Does a service of the platform live, and say that it is well?"""
    found = context.platform.services.get(name) if context.platform else None
    if found is None:
        return
    with httpx2.Client(timeout=context.answer_seconds, trust_env=False) as http:
        yield _health(http, name, found, context.answer_seconds)
        if found.restarts:
            again = f"it had to be started again {plural(found.restarts, 'time')}"
            yield warning(f"Service: {name}", again, f"see why:  caudal logs {name}")
        yield from _version(http, name, found)


def _health(http: httpx2.Client, name: str, service: "ServiceState", seconds: float) -> Finding:
    subject, see = f"Service: {name}", f"see why:  caudal logs {name}"
    address = service.metrics.removesuffix("/metrics")
    try:
        answer = http.get(f"{address}/health")
    except httpx2.TimeoutException:
        found = f"does not answer within {seconds:g} s at {address}"
        return problem(subject, f"{found} (process {service.pid}, {service.state})", see)
    except httpx2.HTTPError as error:
        return problem(subject, f"cannot be reached at {address}: {error} ({service.state})", see)
    if answer.is_success:
        return ok(subject, f"well at {service.endpoint}, process {service.pid}")
    return problem(subject, f"not well at {service.endpoint}: {_reason(answer)}", see)


def _reason(answer: httpx2.Response) -> str:
    try:
        body = answer.json()
        return str(body.get("message") or body.get("status"))
    except (ValueError, AttributeError):
        return f"HTTP {answer.status_code}"


def _version(http: httpx2.Client, name: str, service: "ServiceState") -> Iterator[Finding]:
    """A service that was started before an upgrade is still the old one."""
    if name not in _VERSION_PATHS:
        return
    path, key = _VERSION_PATHS[name]
    try:
        theirs = str(http.get(service.endpoint + path).json()[key])
    except (httpx2.HTTPError, ValueError, KeyError, TypeError):
        return  # its health check says so already
    ours = version("caudal")
    if ours not in theirs:
        found = f"runs {theirs}, but {ours} is installed"
        yield warning(f"Service: {name}", found, "start it with the new version:  caudal down  and  caudal up")
