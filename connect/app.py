"""Composition: stores, supervisor, executor and the REST API become one running worker."""

import asyncio
import logging
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import uvloop

from connect.api.errors import ConnectError
from connect.metrics import families
from connect.rest.app import application
from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.errors import WorkerError
from connect.runtime.executor import Executor
from connect.runtime.leading.access_rules import TopicRules
from connect.runtime.leading.supervisor import Supervisor
from connect.runtime.redrive.box import DeadLetterBox
from connect.settings import ConnectSettings
from core_broker.client.errors import ClientError
from core_broker.security.authorizer import Denial
from core_broker.service import lifecycle
from core_broker.service.metrics import Family
from core_broker.service.web.app import LateApplication
from core_broker.service.web.asgi import Application
from core_broker.service.web.server import endpoints, serving
from core_broker.web_access.login import Login, login_of
from core_broker.web_access.rules import Rules

log = logging.getLogger(__name__)

_ELECTION_SECONDS = 15.0
_PAUSE_SECONDS = 0.02
_RULES_SECONDS = 0.2
_KEY_SECONDS = 10.0


def run(settings: ConnectSettings) -> int:
    """Run a worker until it is stopped; returns the exit code of the process."""
    try:
        return lifecycle.run(
            running(settings), name="connect", loop_factory=uvloop.new_event_loop, waits_for_others=True
        )
    except (ClientError, ConnectError, OSError, ValueError) as error:
        log.critical("Connect cannot start", extra={"reason": str(error)})
    return 1


@asynccontextmanager
async def running(settings: ConnectSettings) -> AsyncIterator[Mapping[str, str]]:
    """A worker for as long as the block lasts; yields its endpoints."""
    late = LateApplication("The worker is starting.")
    async with login_of(settings).running() as login, serving(late, settings) as urls:
        worker = Worker(settings, url=advertised_url(settings, urls[0]))
        rules = _rules(settings, login)
        late.application = worker.application(login, rules)
        try:
            await asyncio.to_thread(worker.supervisor.start)
            async with AsyncExitStack() as stack:
                if rules.is_enforced:
                    store = TopicRules(worker.supervisor)
                    await stack.enter_async_context(rules.following(store, seconds=_RULES_SECONDS))
                if login.is_required:
                    await stack.enter_async_context(lifecycle.beside(_renew_session_keys(worker.supervisor)))
                await asyncio.to_thread(_wait_for_leader, worker.supervisor)
                yield endpoints(urls)
        finally:
            await asyncio.to_thread(worker.close)


class Worker:
    """The parts of one worker."""

    def __init__(self, settings: ConnectSettings, *, url: str) -> None:
        self._settings = settings
        self._plugins = Plugins.load()
        self._providers = ConfigProviders(settings)
        self._executor = _executor(settings)
        self.supervisor = Supervisor(
            settings,
            plugins=self._plugins,
            providers=self._providers,
            executor=self._executor,
            worker_id=urlsplit(url).netloc,
            url=url,
        )
        self._letters = DeadLetterBox(
            settings,
            self._plugins,
            self._providers,
            config_of=self.supervisor.stored_config,
            check_leads=self.supervisor.writer,
            on_new_topic=self._read_new_topic,
        )

    def application(self, login: Login, rules: Rules) -> Application:
        """The REST API; must be made inside the event loop that serves it."""
        return application(
            self.supervisor,
            settings=self._settings,
            login=login,
            plugins=self._plugins,
            providers=self._providers,
            collect=self._collect,
            dead_letters=self._letters,
            rules=rules,
        )

    def close(self) -> None:
        """Stop everything."""
        self.supervisor.close()
        self._letters.close()

    def _read_new_topic(self, name: str) -> None:
        """Restart the tasks: they choose their topics when they start."""
        for task in self.supervisor.status(name).tasks:
            self.supervisor.restart_task(name, task.id)

    def _collect(self) -> Iterable[Family]:
        tasks = {(task.connector, str(task.task)): it for task, it in self._executor.counters().items()}
        states: Counter[tuple[str, str]] = Counter()
        for name in self.supervisor.connectors():
            status = self.supervisor.status(name)
            states["connector", status.connector.state.value] += 1
            states.update(("task", task.state.value) for task in status.tasks)
        return families(tasks, states)


def _rules(settings: ConnectSettings, login: Login) -> Rules:
    def on_denial(denial: Denial) -> None:
        login.audit.denied(denial)

    return Rules(settings, on_denial=on_denial)


async def _renew_session_keys(supervisor: Supervisor) -> None:
    while True:
        await asyncio.sleep(_KEY_SECONDS)
        try:
            await asyncio.to_thread(supervisor.renew_session_key)
        except WorkerError as error:
            log.warning("the key of forwarded requests stays as it is for now", extra={"reason": error.message})


def _executor(settings: ConnectSettings) -> Executor:
    if settings.executor == "celery":
        from connect.executors.celery.executor import CeleryExecutor

        return CeleryExecutor(settings)
    from connect.executors.in_process import InProcess

    return InProcess(settings)


def _wait_for_leader(supervisor: Supervisor) -> None:
    """Wait for a leader, without which nothing can be created; not for ever, since other workers may be slow."""
    deadline = time.monotonic() + _ELECTION_SECONDS
    while not supervisor.is_leader and supervisor.leader_url is None and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)


def advertised_url(settings: ConnectSettings, url: str) -> str:
    """The URL for other workers: this machine's name if the worker listens at every address, else the listener's."""
    listener, taken = urlsplit(settings.listeners[0]), urlsplit(url)
    is_everywhere = listener.hostname in (None, "0.0.0.0", "::")
    own = socket.gethostname() if is_everywhere else listener.hostname
    host = settings.rest_advertised_host_name or own or ""
    shown = f"[{host}]" if ":" in host else host
    return f"{taken.scheme}://{shown}:{settings.rest_advertised_port or taken.port}"
