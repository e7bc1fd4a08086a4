"""The services of the running platform: their health, restarts and versions."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import httpx2

from deploy.doctor.finding import Context, Finding, note, ok, problem, warning
from deploy.stack import kind_of
from deploy.views.text import plural

if TYPE_CHECKING:
    from deploy.launcher.state import ServiceState

_VERSION_PATHS: Final = {"registry": ("/v1/metadata/version", "version"), "connect": ("/", "commit")}
"""Where services report their version, and under which key."""


def platform(context: Context) -> Iterator[Finding]:
    """Does a platform run in the data folder?"""
    found = context.platform
    if found is None:
        yield note("Platform", f"none runs in {context.data}", "start one:  caudal up")
        return
    yield ok("Platform", f"{found.state} in {found.data}, process {found.pid}")
    for name, address in found.elsewhere.items():
        yield note("Platform", f"its {name} is external: {address}")


def service(context: Context, *, name: str) -> Iterator[Finding]:
    """Is a service of the platform, or each broker of a cluster, up and healthy?"""
    for own, found in (context.platform.services if context.platform else {}).items():
        if kind_of(own).name == name:
            yield from _examine(context, own, found)


def _examine(context: Context, name: str, found: "ServiceState") -> Iterator[Finding]:
    assert context.platform is not None
    tls = context.platform.tls()
    with httpx2.Client(timeout=context.answer_seconds, trust_env=False, verify=tls or True) as http:
        yield _health(http, name, found, context.answer_seconds)
        if found.restarts:
            again = f"it was restarted {plural(found.restarts, 'time')}"
            yield warning(f"Service: {name}", again, f"see why:  caudal logs {name}")
        if name not in _VERSION_PATHS:
            return
        # A service that was started before an upgrade still runs the old version.
        path, key = _VERSION_PATHS[name]
        try:
            theirs = str(http.get(found.endpoint + path).json()[key])
        except (httpx2.HTTPError, ValueError, KeyError, TypeError):
            return  # the health check reports it
        if (ours := version("caudal")) not in theirs:
            steps = "start it with the new version:  caudal down  and  caudal up"
            yield warning(f"Service: {name}", f"runs {theirs}, but {ours} is installed", steps)


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
        return ok(subject, f"healthy at {service.endpoint}, process {service.pid}")
    try:
        body = answer.json()
        reason = str(body.get("message") or body.get("status"))
    except (ValueError, AttributeError):
        reason = f"HTTP {answer.status_code}"
    return problem(subject, f"not healthy at {service.endpoint}: {reason}", see)
