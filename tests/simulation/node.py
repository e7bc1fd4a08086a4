"""A node of the simulated cluster: the real parts of a broker, on a directory that outlives its crashes."""

import asyncio
import shutil
import traceback
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from core_broker.broker import Links, start
from core_broker.cluster.partition import Partition
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import Services
from core_broker.metrics import BrokerMetrics
from core_broker.settings import BrokerSettings
from tests.simulation.network import SimulatedPeers, SimulatedServer
from tests.simulation.virtual_loop import Life, VirtualLoop

if TYPE_CHECKING:
    from tests.simulation.cluster import World

_EPOCH_MS = 1_700_000_000_000


class NodeClock:
    """The clocks of one machine: the wall clock may jump."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.jump_ms = 0

    def now_ms(self) -> int:
        return _EPOCH_MS + self.jump_ms + int(self._loop.time() * 1000)

    def monotonic(self) -> float:
        return self._loop.time()


class SimulatedNode:
    """A node, which may be down."""

    def __init__(self, world: "World", number: int, directory: Path, settings: Mapping[str, str]) -> None:
        self.world = world
        self.number = number
        self.directory = directory
        self.settings = BrokerSettings.parse({**settings, "node.id": str(number), "log.dirs": str(directory)})
        self.clock = NodeClock(world.loop)
        self.life: Life | None = None
        self.is_serving = False
        """Whether it has started completely."""
        self.is_stopping = False
        self._server: SimulatedServer | None = None
        self._stop = asyncio.Event()
        self._lives = 0

    @property
    def is_up(self) -> bool:
        """Whether its process runs."""
        return self.life is not None

    @property
    def services(self) -> Services | None:
        """Its parts, as soon as it has them."""
        return getattr(self._server, "services", None) if self.is_up else None

    def partition(self, topic: str, index: int, topic_id: bytes) -> Partition | None:
        """A partition that it hosts."""
        services = self.services
        found = None if services is None else services.partitions.find(topic, index)
        return found if found is not None and found.topic_id == topic_id else None

    def start(self) -> None:
        """Start the process."""
        if self.life is not None:
            return
        self._lives += 1
        life = self.life = Life(f"node-{self.number}.{self._lives}", self.number)
        self.is_serving = self.is_stopping = False
        self._stop = asyncio.Event()
        self.world.loop.create_task(self._run(life), context=life.context)

    async def _run(self, life: Life) -> None:
        network = self.world.network
        metrics = BrokerMetrics()
        peers = SimulatedPeers(network, self.number, life)
        server = self._server = SimulatedServer(self.settings, metrics, network, life)
        try:
            async with AsyncExitStack() as stack:
                await start(self.settings, self.clock, stack, metrics=metrics, links=Links(peers, peers), server=server)
                self.is_serving = True
                self.world.note(f"{life.name} serves")
                await self._stop.wait()
                self.is_serving = False
        except Exception as error:  # noqa: BLE001 - any but one of them is a bug
            reason = _innermost(error)
            # As a real one would, a node ends that cannot register in time or write to its disk, and is started again.
            is_expected = isinstance(reason, BrokerError) and (
                "registration" in reason.message
                or (life.has_failed_disk and reason.code is ErrorCode.KAFKA_STORAGE_ERROR)
            )
            if is_expected and isinstance(reason, BrokerError):
                self.world.note(f"{life.name} ended: {reason.message}")
            else:
                self.world.fail(f"{life.name} ended with an error: {''.join(traceback.format_exception(reason))}")
        self._end(life)

    def _end(self, life: Life) -> None:
        if self.life is life:
            self.life, self._server, self.is_serving = None, None, False
            life.is_dead = True
            self.world.files.release(life)

    def stop(self) -> None:
        """Ask the process to stop, as a signal does."""
        if self.is_serving:
            self.is_stopping = True
            self._stop.set()

    def crash(self, *, loses_records: bool = False) -> None:
        """End the process at once; with its machine, it loses what was not synced.

        Metadata must survive that on any number of machines, records only on one.
        """
        life = self.life
        if life is None:
            return
        life.is_dead = True
        world, network = self.world, self.world.network
        network.servers = {a: s for a, s in network.servers.items() if s.life is not life}
        network.reset(life)
        self._end(life)
        lost = world.files.lose_unsynced(life, world.rng, is_metadata_only=not loses_records)
        world.note(f"{life.name} lost {lost} bytes")

    def wipe(self) -> None:
        """Give a node that is down an empty disk."""
        shutil.rmtree(self.directory)


def _innermost(error: BaseException) -> BaseException:
    return _innermost(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
