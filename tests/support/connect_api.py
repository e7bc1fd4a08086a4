"""The REST API in front of a worker that keeps everything in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, cast

import httpx2

from connect.rest.app import application
from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.leading.supervisor import Supervisor
from connect.runtime.redrive.box import DeadLetterBox
from connect.settings import ConnectSettings
from core_broker.service.web.asgi import Application
from core_broker.web_access.login import login_of
from core_broker.web_access.rules import Rules
from tests.support.connect_plugins import quiet_plugins
from tests.support.memory_supervisor import MemoryDeadLetters, MemorySupervisor

SINK = {"connector.class": "com.example.QuietSinkConnector", "tasks.max": "2", "topics": "t1"}


class Api(httpx2.AsyncClient):
    """A client of the API, and what is behind it."""

    supervisor: MemorySupervisor
    letters: MemoryDeadLetters
    app: Application

    async def create(self, name: str = "one", **config: str) -> None:
        """A sink, to be looked at."""
        answer = await self.post("/connectors", json={"name": name, "config": {**SINK, **config}})
        assert answer.status_code == 201, answer.text


@asynccontextmanager
async def serve(*, number: int = 0, **given: str) -> AsyncIterator[Api]:
    """The API with these settings; several at once differ by number."""
    settings = ConnectSettings.parse({key.replace("_", "."): value for key, value in given.items()})
    app, behind = _application(settings, number)
    supervisor = MemorySupervisor(settings, quiet_plugins(), ConfigProviders(settings))
    letters = MemoryDeadLetters()
    behind["supervisor"].behind, behind["letters"].behind = supervisor, letters
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with Api(transport=transport, base_url="http://test") as client:
        client.supervisor, client.letters, client.app = supervisor, letters, app
        yield client


class _Replaceable:
    """Stands in front of what changes from test to test: making an application takes a tenth of a second."""

    behind: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


@cache
def _application(settings: ConnectSettings, number: int) -> tuple[Application, dict[str, _Replaceable]]:
    supervisor, letters = _Replaceable(), _Replaceable()
    app = application(
        cast("Supervisor", supervisor),
        settings=settings,
        login=login_of(settings),
        plugins=quiet_plugins(),
        providers=ConfigProviders(settings),
        collect=lambda: (),
        dead_letters=cast("DeadLetterBox", letters),
        rules=Rules(settings),
    )
    return app, {"supervisor": supervisor, "letters": letters}
