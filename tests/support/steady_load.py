"""Clients of a secured platform that go on and on, over new connections and over some that stay open."""

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Final, Self

import httpx2
from confluent_kafka import KafkaError, Message, Producer

from tests.support.patience import eventually
from tests.support.platform import PATIENCE_S
from tests.support.secured_services import SERVICES, LoginWith, SecuredServices

TOPIC: Final = "steady"
_PAUSE_S: Final = 0.02
_RECORDS: Final = "application/vnd.kafka.json.v2+json"

Round = Callable[[], None]
"""One round of a client; raises if it was refused or failed."""


class SteadyLoad:
    """Clients in threads of their own, until the block ends."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        """All that went wrong."""
        self.failing: dict[str, str] = {}
        """The clients whose last round went wrong, and why."""
        self._rounds: Counter[str] = Counter()
        self._stop = threading.Event()
        self._threads: dict[str, threading.Thread] = {}
        self._clients = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads.values():
            thread.join(PATIENCE_S)
        self._clients.close()
        alive = [name for name, thread in self._threads.items() if thread.is_alive()]
        assert alive == [], "clients hang"

    def start_http(self, services: SecuredServices, who: str, login: LoginWith, *, produces: bool = True) -> None:
        """Let a client of each HTTP service work, too; every second request of theirs is over a new connection."""
        clients = {name: services.client(name, login) for name in SERVICES}
        for client in clients.values():
            self._clients.enter_context(client)
        by_proxy = ("POST", f"/topics/{TOPIC}", {"records": [{"value": who}]}) if produces else ("GET", "/health", None)
        self.start(
            {
                f"registry, {who}": _asking(clients["registry"], "GET", "/subjects"),
                f"Connect, {who}": _asking(clients["connect"], "GET", "/connectors"),
                f"REST proxy, {who}": _asking(clients["rest-proxy"], *by_proxy),
            }
        )

    def start(self, clients: Mapping[str, Round]) -> None:
        """Let these clients work, too."""
        for name, work in clients.items():
            assert name not in self._threads, name
            self._threads[name] = threading.Thread(target=self._repeat, args=(name, work), name=name)
            self._threads[name].start()

    def wait_for_rounds(self, count: int = 5) -> None:
        """Wait until every client has made so many more rounds."""
        before = self._rounds.copy()

        def late() -> list[str]:
            return [name for name in self._threads if self._rounds[name] - before[name] < count]

        eventually(late, lambda names: not names, timeout_s=PATIENCE_S + 2 * count)

    def wait_until_all_fail(self) -> None:
        """Wait until no client gets in any more."""
        eventually(lambda: set(self._threads) - set(self.failing), lambda left: not left, timeout_s=PATIENCE_S)

    def _repeat(self, name: str, work: Round) -> None:
        while not self._stop.wait(_PAUSE_S):
            try:
                work()
            except Exception as error:  # noqa: BLE001 - every one of them is what the test is about
                self.failing[name] = text = f"{name}, round {self._rounds[name]}: {type(error).__name__}: {error}"
                self.failures.append(text)
            else:
                self.failing.pop(name, None)
            self._rounds[name] += 1


def _asking(client: httpx2.Client, method: str, path: str, body: Any = None) -> Round:
    headers = {"content-type": _RECORDS} if body else {}
    ways = itertools.cycle(("keep-alive", "close"))

    def work() -> None:
        answer = client.request(method, path, json=body, headers={**headers, "connection": next(ways)})
        assert answer.status_code == 200, answer.text
        outcomes = answer.json().get("offsets", []) if body else []
        assert not any(one.get("error_code") for one in outcomes), answer.text

    return work


class OpenProducer:
    """A producer whose connection stays open."""

    def __init__(self, client: Mapping[str, Any]) -> None:
        self._troubles: list[str] = []
        patience_ms = int(PATIENCE_S * 1000)
        self._producer = Producer(
            {**client, "error_cb": self._note, "message.timeout.ms": patience_ms, "log_level": 0, "linger.ms": 0}
        )

    def __call__(self) -> None:
        """Produce a record."""
        self._producer.produce(TOPIC, b"steady", on_delivery=self._judge)
        assert self._producer.flush(PATIENCE_S) == 0
        troubles, self._troubles = self._troubles, []
        assert troubles == []

    def _note(self, error: KafkaError) -> None:
        self._troubles.append(error.str())

    def _judge(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._troubles.append(error.str())


def new_producer(client: Callable[[], Mapping[str, Any]]) -> Round:
    """A producer that connects for each record; one that is refused gives up at once."""

    def work() -> None:
        refusals: list[str] = []
        delivered: list[KafkaError | None] = []
        producer = Producer(
            {
                **client(),
                "error_cb": lambda error: refusals.append(error.str()),
                "message.timeout.ms": int(PATIENCE_S * 1000),
                "log_level": 0,
            }
        )
        producer.produce(TOPIC, b"new", on_delivery=lambda error, _: delivered.append(error))

        def is_decided() -> bool:
            producer.poll(0.05)
            return len(delivered) + len(refusals) > 0

        eventually(is_decided, timeout_s=PATIENCE_S, pause_s=0)
        producer.purge()
        producer.flush(PATIENCE_S)
        assert (refusals, delivered) == ([], [None])

    return work
