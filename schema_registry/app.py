"""Composition: database, rules, routes and the HTTP server become one running registry."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

import uvloop

from core_broker.service import lifecycle
from core_broker.service.clock import SystemClock
from core_broker.service.metrics import Family
from core_broker.service.web import Application, RequestCounts, create_app, guarded
from core_broker.service.web_server import endpoints, serving
from schema_registry.errors import RegistryError
from schema_registry.registry.registry import Registry
from schema_registry.routes import compatibility, schemas, scopes, server, subjects
from schema_registry.routes.media_types import MediaTypes
from schema_registry.routes.paths import RegistryPaths
from schema_registry.routes.ready_answers import ReadyAnswers
from schema_registry.settings import RegistrySettings
from schema_registry.store.database import Database

_DESCRIPTION = """Versioned schemas in Avro, Protobuf and JSON Schema, with the API of Confluent's registry."""


def run(settings: RegistrySettings) -> int:
    """Run a registry until it is told to stop; the exit code is the process's."""
    return lifecycle.run(running(settings), name="registry", loop_factory=uvloop.new_event_loop)


@asynccontextmanager
async def running(settings: RegistrySettings) -> AsyncIterator[Mapping[str, str]]:
    """A registry for as long as the block lasts; gives its endpoints."""
    database = Database(
        settings.database_url,
        pool_size=settings.database_pool_size,
        timeout_seconds=settings.database_timeout_ms / 1000,
    )
    try:
        await asyncio.to_thread(database.migrate)
        async with serving(application(database, settings), settings) as urls:
            yield endpoints(urls)
    finally:
        database.close()


def application(database: Database, settings: RegistrySettings) -> Application:
    """The whole HTTP application over a database."""
    registry = Registry(database, settings, SystemClock())
    counts = RequestCounts("caudal_registry")

    def collect() -> Iterable[Family]:
        yield from counts.families()
        yield ready.family()

    app = create_app(
        title="Caudal schema registry",
        description=_DESCRIPTION,
        error_type=RegistryError,
        collect=collect,
        is_healthy=lambda: _answers(database),
    )
    for router in (
        schemas.router(registry),
        subjects.router(registry),
        compatibility.router(registry),
        scopes.config_router(registry),
        scopes.mode_router(registry),
        server.router(registry),
    ):
        app.include_router(router)
    ready = ReadyAnswers(
        guarded(RegistryPaths(MediaTypes(app)), settings, counts),
        max_bytes=settings.answer_cache_bytes,
        ttl_seconds=settings.answer_cache_ttl_ms / 1000,
    )
    return ready


def _answers(database: Database) -> bool:
    try:
        database.ping()
    except RegistryError:
        return False
    return True
