"""All consumer instances of a proxy: their number and their life.

An instance lives from its creation until it is deleted, or until no request came for a while. It survives a restart of
the proxy, also after a crash: it is opened again by the first request for it. The guarantee is at least once: every
record is answered, in the order of its partition, and nothing is skipped; records are answered again after a crash, and
to a client that comes back after it has left while it was answered, as far as its connection tells that it has not read
the answer. What went through the connection, and was read by nobody behind it, is known to nobody.
"""

import asyncio
import logging
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

from core_broker.client.consumer import Place
from core_broker.client.errors import ClientError
from core_broker.client.group_consumer import Commit, GroupConsumer
from core_broker.client.reachability import Reachability
from core_broker.client.settings import Configuration
from core_broker.service.clock import SystemClock
from rest_proxy.consume.instances import errors
from rest_proxy.consume.instances.config import check_name, parse
from rest_proxy.consume.instances.instance import Instance
from rest_proxy.consume.instances.live import Live, Threads
from rest_proxy.consume.instances.poll import JOIN_SECONDS, Client, Poll
from rest_proxy.consume.instances.state import InstanceFiles, SavedInstance
from rest_proxy.errors import ProxyError, too_many, unavailable
from rest_proxy.formats.decoding import Decoder
from rest_proxy.formats.formats import Format
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.models.v2.consumers import V2CreateInstance
from rest_proxy.settings import ProxySettings

log = logging.getLogger(__name__)

T = TypeVar("T")
Key = tuple[str, str]
"""Group and name."""

_TEND_SECONDS, _REST_SECONDS, _SWEEP_SECONDS = 1.0, 5.0, 60.0
_REMEMBERED_MAX = 1000
_DAY_MS = 86_400_000
_PROPERTIES: Configuration = {
    # An instance that nobody reads from is to cost little memory, and one that is read from is to be served promptly.
    "queued.max.messages.kbytes": 16 * 1024,
    "queued.min.messages": 10_000,
    "fetch.queue.backoff.ms": 10,
    # On the wire, all that is asked of a broker waits for the fetch before it: a seek, a commit.
    "fetch.wait.max.ms": 250,
    "fetch.error.backoff.ms": 100,
    "topic.metadata.refresh.interval.ms": 30_000,
    # A proxy that was killed must not keep its partitions for long from the one that is started in its place.
    "session.timeout.ms": 10_000,
    "heartbeat.interval.ms": 3_000,
}


class Instances:
    """The consumer instances; `running` is their life."""

    def __init__(
        self,
        settings: ProxySettings,
        *,
        reachability: Reachability,
        decoders: Mapping[Format, Decoder],
        metrics: ProxyMetrics,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._timeout_ms = settings.consumer_instance_timeout_ms
        self._files = InstanceFiles(settings.state_dir, timeout_ms=self._timeout_ms, clock=SystemClock())
        self._decoders = decoders
        self._live: dict[Key, Live] = {}
        self._expired: OrderedDict[Key, None] = OrderedDict()
        self._doors: dict[Key, asyncio.Lock] = {}
        self._at_doors: Counter[Key] = Counter()
        self._threads = Threads(settings.consumer_instances_max, reachability=reachability, address=settings.address)
        self._is_stopping = False

    @property
    def count(self) -> int:
        """How many instances are open, for the gauge `caudal_rest_proxy_consumer_instances`."""
        return len(self._live)

    # --- life ---

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Tend the instances for as long as the block lasts; then all leave their groups."""
        await self._threads.run(partial(self._files.sweep, ()))
        try:
            async with asyncio.TaskGroup() as group:
                tending = group.create_task(self._tend(group))
                try:
                    yield
                finally:
                    self.stop()
                    tending.cancel()
        finally:
            await self._close_all()

    def stop(self) -> None:
        """Let polls in work answer at once, and take no new instances."""
        self._is_stopping = True

    async def create(self, group: str, asked: V2CreateInstance) -> str:
        """A new instance; gives its name."""
        check_name("group.id", group)
        name = next((given for given in (asked.id, asked.name) if given is not None), self._new_name())
        check_name("name", name)
        saved = SavedInstance(group=group, name=name, config=parse(asked, self._settings))
        key = (group, name)
        async with self._door(key):
            left = None if key in self._live else await self._threads.run(partial(self._files.load, group, name))
            if key in self._live or left:
                raise errors.already_exists()
            self._check_room()
            try:
                live = await self._open(saved)
            except ClientError as error:
                raise ProxyError(42204, f"Invalid consumer configuration: {error}") from error
            self._expired.pop(key, None)
            await live.call(Instance.save)
        return name

    async def delete(self, group: str, name: str) -> None:
        """End an instance: it leaves its group at once."""
        arrived_at = time.monotonic()
        live = await self._found(group, name)
        async with self._door((group, name)):
            if live.is_closed:
                raise errors.not_found()
            self._live.pop((group, name), None)
            await live.close(arrived_at=arrived_at)
            await self._threads.run(partial(self._files.remove, group, name))

    def _new_name(self) -> str:
        own = f"{self._settings.id}-" if self._settings.id else ""
        return f"rest-consumer-{own}{uuid.uuid4()}"

    def _check_room(self) -> None:
        if self._is_stopping:
            raise unavailable("The proxy is about to stop")
        most = self._settings.consumer_instances_max
        if len(self._live) >= most:
            raise too_many(
                f"There are {most} consumer instances, as many as may be (consumer.instances.max): delete one, or wait "
                "until one expires"
            )

    async def _open(self, saved: SavedInstance) -> Live:
        """Open an instance; raises ClientError."""
        instance = await self._threads.run(
            partial(Instance, saved, connect=partial(self._connect, saved), files=self._files)
        )
        live = self._live[saved.group, saved.name] = Live(instance, self._threads)
        return live

    def _connect(self, saved: SavedInstance) -> GroupConsumer:
        settings = self._settings.kafka(self._settings.consumer_properties)
        defaults: Configuration = {
            **_PROPERTIES,
            "max.poll.interval.ms": min(_DAY_MS, max(300_000, 2 * self._timeout_ms)),
            "socket.timeout.ms": max(1000, settings.timeout_ms),
            "client.id": saved.name,
        }
        own: Configuration = {**saved.config.properties, "auto.offset.reset": saved.config.auto_offset_reset}
        return GroupConsumer(settings, group_id=saved.group, defaults=defaults, properties=own)

    async def _found(self, group: str, name: str) -> Live:
        """An instance in use, opened again if it is of before a restart."""
        key = (group, name)
        if found := self._live.get(key):
            return found
        async with self._door(key):
            if found := self._live.get(key):
                return found
            saved = await self._threads.run(partial(self._files.load, group, name))
            if saved is None:
                raise await self._absence(key)
            self._check_room()
            log.info("consumer instance is opened again", extra={"group": group, "instance": name})
            try:
                return await self._open(saved)
            except ClientError as error:
                raise self._threads.told(error) from error

    @asynccontextmanager
    async def _door(self, key: Key) -> AsyncIterator[None]:
        """Nobody else opens or ends this instance meanwhile."""
        self._at_doors[key] += 1
        try:
            async with self._doors.setdefault(key, asyncio.Lock()):
                yield
        finally:
            self._at_doors[key] -= 1
            if not self._at_doors[key]:
                del self._at_doors[key], self._doors[key]

    async def _absence(self, key: Key) -> ProxyError:
        """Why there is no such instance."""
        if key in self._expired or await self._threads.run(partial(self._files.is_expired, *key)):
            return errors.not_found(
                f"It has expired: no request came within {self._timeout_ms} ms (consumer.instance.timeout.ms)."
            )
        if not self._files.is_kept:
            return errors.not_found(
                "If it was there before: instances do not survive a restart of this proxy (state.dir is empty)."
            )
        return errors.not_found()

    # --- what clients do ---

    async def use(self, group: str, name: str, call: Callable[[Instance], T], *, is_remote: bool = True) -> T:
        """Call an instance on a thread, when nobody else does; `is_remote` says that it asks the cluster."""
        live = await self._found(group, name)
        with live.in_work():
            if is_remote:
                await self._threads.check_cluster()
            return await live.call(call)

    async def seek(self, group: str, name: str, *, offsets: Mapping[Place, int], times: Mapping[Place, int]) -> None:
        """Read on elsewhere; waits for the group to give the instance its partitions."""
        arrived_at = time.monotonic()
        live = await self._found(group, name)
        with live.in_work():
            await self._threads.check_cluster()
            while live.instance.is_waiting_for_group and time.monotonic() < arrived_at + JOIN_SECONDS:
                await live.call(partial(Instance.tend, is_resting=False))
                await asyncio.sleep(0.02)
            await live.call(partial(Instance.seek, offsets=offsets, times=times, arrived_at=arrived_at))

    async def commit(self, group: str, name: str, commits: Mapping[Place, Commit] | None) -> None:
        """Commit what is listed, or else all that was answered."""
        await self.use(group, name, partial(Instance.commit, commits=commits, arrived_at=time.monotonic()))

    async def assigned(self, group: str, name: str) -> Sequence[Place]:
        """The partitions that an instance reads."""

        def look(instance: Instance) -> Sequence[Place]:
            instance.tend(is_resting=False)
            return instance.assigned

        return await self.use(group, name, look, is_remote=False)

    async def format_of(self, group: str, name: str) -> Format:
        """The format of an instance's keys and values."""
        return (await self._found(group, name)).instance.config.format

    async def poll(
        self, group: str, name: str, *, timeout_ms: int | None, max_bytes: int | None, client: Client
    ) -> bytes:
        """The next records as JSON, within the time that is given, or that the instance was created with."""
        live = await self._found(group, name)
        most = self._settings.consumer_request_max_bytes
        decoder = self._decoders[live.instance.config.format]
        poll = Poll(live, self._threads, decoder, timeout_ms=timeout_ms, max_bytes=min(max_bytes or most, most))
        with live.in_work():
            body, count = await poll.answer(
                client, is_plain=self._settings.api_v2_plain_records, is_stopping=lambda: self._is_stopping
            )
        self._metrics.add_consumed(live.instance.config.format, "instance", count)
        return body

    # --- tending ---

    async def _tend(self, group: asyncio.TaskGroup) -> None:
        """Let idle instances go on in their groups, and end those that nobody uses any more."""
        timeout = self._timeout_ms / 1000
        swept_at = time.monotonic()
        while True:
            await asyncio.sleep(min(_TEND_SECONDS, timeout / 4))
            for key, live in list(self._live.items()):
                if live.is_idle and time.monotonic() - live.used_at >= timeout:
                    self._expire(key, live)
                    group.create_task(self._ended(key, live))
                else:
                    group.create_task(self._tended(live))
            if time.monotonic() - swept_at >= _SWEEP_SECONDS:
                swept_at = time.monotonic()
                group.create_task(self._threads.run(partial(self._files.sweep, tuple(self._live))))

    async def _tended(self, live: Live) -> None:
        now = time.monotonic()
        if not live.is_idle or live.used_at > live.noted_at:
            live.noted_at = now
            await self._threads.run(partial(self._files.touch, live.instance.group, live.instance.name))
        if live.is_idle:
            try:
                await live.call(partial(Instance.tend, is_resting=now - live.used_at > _REST_SECONDS))
            except ProxyError as error:
                log.debug("idle consumer instance", extra={"group": live.instance.group, "reason": error.message})

    def _expire(self, key: Key, live: Live) -> None:
        log.info("consumer instance has expired", extra={"group": key[0], "instance": key[1]})
        self._live.pop(key, None)
        live.is_closed = True
        self._expired[key] = None
        if len(self._expired) > _REMEMBERED_MAX:
            self._expired.popitem(last=False)

    async def _ended(self, key: Key, live: Live) -> None:
        async with self._door(key):
            await live.close()
            if key not in self._live:
                await self._threads.run(partial(self._files.remove, *key))

    async def _close_all(self) -> None:
        """All leave their groups; they are found again after a restart."""
        closing = [live.close() for live in self._live.values()]
        self._live.clear()
        try:
            async with asyncio.timeout(max(1.0, self._settings.shutdown_timeout_ms / 1000)):
                await asyncio.gather(*closing)
        except TimeoutError:
            log.warning("consumer instances have not left their groups in time")
        self._threads.shutdown()
