"""Composition: a running registry made of database, rules, routes and HTTP server."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import uvloop
from fastapi import APIRouter

from core_broker.security.authorizer import Denial
from core_broker.service import lifecycle
from core_broker.service.clock import SystemClock
from core_broker.service.metrics import Family
from core_broker.service.web.app import create_app, with_limits
from core_broker.service.web.asgi import Application
from core_broker.service.web.counts import RequestCounts
from core_broker.service.web.server import endpoints, serving
from core_broker.web_access import rules_api
from core_broker.web_access.callers import Caller
from core_broker.web_access.documented import add_access
from core_broker.web_access.login import Login, login_of
from core_broker.web_access.middleware import with_login
from core_broker.web_access.rules import ResourceType, Rules
from schema_registry.errors import RegistryError
from schema_registry.metrics import AccessMetrics
from schema_registry.registry.access import AccessRules
from schema_registry.registry.associations import Associations
from schema_registry.registry.deks import Deks
from schema_registry.registry.karapace_file import KarapaceFile
from schema_registry.registry.kms import LOCAL, LocalKms
from schema_registry.registry.registry import Registry
from schema_registry.routes import associations, compatibility, deks, schemas, scopes, server, subjects
from schema_registry.routes.guard import Guard, GuardedRoute
from schema_registry.routes.media_types import MediaTypes
from schema_registry.routes.paths import RegistryPaths
from schema_registry.routes.response_cache import ResponseCache
from schema_registry.settings import RegistrySettings
from schema_registry.store.access_rules import SqlRules
from schema_registry.store.database import Database

log = logging.getLogger(__name__)

_DESCRIPTION = """Versioned schemas in Avro, Protobuf and JSON Schema, with the API of Confluent's registry."""


def run(settings: RegistrySettings) -> int:
    """Run a registry until it is asked to stop; returns the exit code of the process."""
    try:
        return lifecycle.run(running(settings), name="registry", loop_factory=uvloop.new_event_loop)
    except (RegistryError, OSError, ValueError) as error:
        log.critical("registry cannot start", extra={"reason": str(error)})
    return 1


@asynccontextmanager
async def running(settings: RegistrySettings) -> AsyncIterator[Mapping[str, str]]:
    """Run a registry for the duration of the block; yields its endpoints."""
    database = Database(
        settings.database_url,
        pool_size=settings.database_pool_size,
        timeout_seconds=settings.database_timeout_ms / 1000,
    )
    try:
        await asyncio.to_thread(database.migrate)
        async with (
            assembled(database, settings) as app,
            serving(app, settings) as urls,
        ):
            yield endpoints(urls)
    finally:
        database.close()


@asynccontextmanager
async def assembled(database: Database, settings: RegistrySettings) -> AsyncIterator[Application]:
    """The complete HTTP application over a database, for the event loop that runs the block."""
    async with AsyncExitStack() as stack:
        file = None
        if settings.registry_authfile is not None:
            file = await asyncio.to_thread(KarapaceFile, Path(settings.registry_authfile))
            await stack.enter_async_context(file.following())
        passwords = () if file is None else (file,)
        login = await stack.enter_async_context(login_of(settings, passwords=passwords).running())
        metrics = AccessMetrics()

        def on_denial(denial: Denial) -> None:
            metrics.count_denied(denial.operation.name)
            login.audit.denied(denial)

        rules = Rules(settings, on_denial=on_denial)
        if rules.is_enforced:
            await stack.enter_async_context(rules.following(SqlRules(database)))
        access = AccessRules(rules) if file is None else AccessRules(rules, is_permitted_by_file=file.permits)
        yield _application(database, settings, login, rules=rules, access=access, metrics=metrics)


def _application(
    database: Database,
    settings: RegistrySettings,
    login: Login,
    *,
    rules: Rules,
    access: AccessRules,
    metrics: AccessMetrics,
) -> Application:
    loop = asyncio.get_running_loop()

    def clear_cache() -> None:
        # Called on worker threads. The event loop runs what they schedule before it sends the response.
        loop.call_soon_threadsafe(cache.clear)

    registry = Registry(database, settings, SystemClock(), on_schemas_removed=clear_cache)
    counts = RequestCounts("caudal_registry")

    def collect() -> Iterable[Family]:
        yield from registry.metrics.families()
        yield from counts.families()
        yield cache.family()
        yield from login.families()
        if access.is_enforced:
            yield from metrics.families()

    app = create_app(
        title="Caudal schema registry",
        description=_DESCRIPTION,
        error_type=RegistryError,
        collect=collect,
        is_healthy=lambda: _is_reachable(database),
        code_aliases={40901: settings.schema_incompatible_error_code},
        missing_body_status=422,
    )
    for router in _routers(registry, database, settings, on_subjects_removed=clear_cache):
        app.include_router(router)
    app.include_router(
        rules_api.router(
            rules,
            SqlRules(database),
            resource_types=(ResourceType.SUBJECT, ResourceType.REGISTRY),
            whole=ResourceType.REGISTRY,
            audit=login.audit,
            route_class=GuardedRoute,
        )
    )
    add_access(app, settings)

    def note_change(caller: Caller, api: str, path: str) -> None:
        login.audit.changed_over_http(caller.principal, caller.host, api, resources=[path])

    Guard(access, on_change=note_change if login.is_required else None).install(app)
    cache = ResponseCache(
        with_limits(RegistryPaths(MediaTypes(app)), settings, counts),
        max_bytes=settings.answer_cache_bytes,
        ttl_seconds=settings.answer_cache_ttl_ms / 1000,
        rules=access,
    )
    return with_login(cache, login, counts=counts)


def _routers(
    registry: Registry, database: Database, settings: RegistrySettings, *, on_subjects_removed: Callable[[], None]
) -> Iterable[APIRouter]:
    yield schemas.router(registry)
    yield subjects.router(registry)
    yield compatibility.router(registry)
    yield scopes.config_router(registry)
    yield scopes.mode_router(registry)
    yield server.router(registry)
    secret = settings.dek_local_kms_secret
    keys = Deks(
        database,
        SystemClock(),
        drivers={LOCAL: LocalKms(secret)},
        max_keys=settings.dek_registry_max_keys,
        is_importing=lambda subject: registry.mode(subject, default_to_global=True).mode == "IMPORT",
    )
    yield deks.router(keys)
    yield associations.router(
        Associations(database, SystemClock(), schemas=registry, on_subjects_removed=on_subjects_removed)
    )


def _is_reachable(database: Database) -> bool:
    try:
        database.ping()
    except RegistryError:
        return False
    return True
