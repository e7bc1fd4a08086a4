"""Composition root: the service of SQL, its REST API and the HTTP server become one running process."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

import msgspec
import uvloop
from fastapi import FastAPI

from core_broker.client.errors import ClientError
from core_broker.service import lifecycle
from core_broker.service.clock import SystemClock
from core_broker.service.metrics import Family
from core_broker.service.web.counts import RequestCounts
from core_broker.service.web.server import endpoints, serving
from core_broker.web_access.login import login_of
from streams.errors import StreamsError
from streams.metrics import Copy, client_families, copy_families, query_families
from streams.rest.application import api, application
from streams.rest.connections import speaking
from streams.server.service import Service
from streams.settings import StreamsSettings

log = logging.getLogger(__name__)


def run(settings: StreamsSettings) -> int:
    """Run the service until it is stopped; returns the exit code of the process."""
    try:
        return lifecycle.run(
            running(settings), name="streams", loop_factory=uvloop.new_event_loop, waits_for_others=True
        )
    except (ClientError, StreamsError, OSError, ValueError) as error:
        log.critical("the SQL service cannot start", extra={"reason": str(error)})
    return 1


def create_app(settings: StreamsSettings) -> FastAPI:
    """The API alone, over a service that the caller starts: `app.state.service`."""
    service = Service(settings)
    app = api(service, collect=lambda: _families(service))
    app.state.service = service
    return app


@asynccontextmanager
async def running(settings: StreamsSettings) -> AsyncIterator[Mapping[str, str]]:
    """The service for as long as the block lasts; yields its endpoints. It answers 503 until it has started."""
    lifecycle.allow_many_files()
    service = Service(settings, on_progress=lambda line: log.info("engine", extra={"progress": line}))
    counts = RequestCounts("caudal_streams")
    async with login_of(settings).running() as login:

        def collect() -> Iterable[Family]:
            yield from _families(service)
            yield from counts.families()
            yield from login.families()

        app = application(api(service, collect=collect), service, login=login, counts=counts)
        spoken = speaking(stall_seconds=settings.ksql_idle_connection_timeout_seconds)
        try:
            async with serving(app, settings, speaking=spoken) as urls:
                await asyncio.to_thread(service.start)
                try:
                    yield {**endpoints(urls), "state": str(settings.state_folder)}
                finally:
                    # Before the server waits for its requests: push queries end only now.
                    await asyncio.to_thread(service.open_queries.close_all)
        finally:
            await asyncio.to_thread(service.close)


def _families(service: Service) -> Iterable[Family]:
    progress = {name: msgspec.structs.asdict(one) for name, one in service.progress().items()}
    yield from query_families(progress, now_ms=SystemClock().now_ms())
    tables = [source.name for source in service.catalog.sources() if source.is_materialized]
    yield from copy_families([Copy(name, service.copies.rows(name), service.copies.lag(name)) for name in tables])
    yield from client_families({kind: service.open_queries.count(kind) for kind in ("push", "pull", "print")})
