"""All consumer instances of a proxy: how many there may be, and how long they live.

An instance lives from its creation until it is deleted, or until no request has come for a while. It survives a restart
of the proxy, even a crash: the first request for it opens it again. The guarantee is at least once: every record is
sent, in the order of its partition, and nothing is skipped. Records are sent again after a crash, and to a client that
left in the middle of a response, if its connection shows that it did not read it. A response that went through the
connection but was lost behind it cannot be noticed.
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

from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import ClientError
from core_broker.client.group_consumer import Commit, GroupConsumer
from core_broker.client.reachability import Reachability
from core_broker.client.settings import Configuration
from core_broker.service.clock import SystemClock
from rest_proxy.consume.instances import errors
from rest_proxy.consume.instances.active import ActiveInstance, Threads
from rest_proxy.consume.instances.config import check_name, parse
from rest_proxy.consume.instances.instance import Instance
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

_KEEP_ALIVE_SECONDS, _IDLE_SECONDS, _SWEEP_SECONDS = 1.0, 5.0, 60.0
_EXPIRED_MAX = 1000
_DAY_MS = 86_400_000
_PROPERTIES: Configuration = {
    # An idle instance should cost little memory, and an active one should be served promptly.
    "queued.max.messages.kbytes": 16 * 1024,
    "queued.min.messages": 10_000,
    "fetch.queue.backoff.ms": 10,
    # A broker handles the requests of a connection in order: a seek or a commit waits for the fetch before it.
    "fetch.wait.max.ms": 250,
    "fetch.error.backoff.ms": 100,
    "topic.metadata.refresh.interval.ms": 30_000,
    # A proxy that was killed must not block its partitions for long, so that its successor can read them.
    "session.timeout.ms": 10_000,
    "heartbeat.interval.ms": 3_000,
}


class Instances:
    """The consumer instances; use them within `running`."""

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
        self._active: dict[Key, ActiveInstance] = {}
        self._expired: OrderedDict[Key, None] = OrderedDict()
        self._locks: dict[Key, asyncio.Lock] = {}
        self._lock_users: Counter[Key] = Counter()
        self._threads = Threads(settings.consumer_instances_max, reachability=reachability, address=settings.address)
        self._is_stopping = False

    @property
    def count(self) -> int:
        """The number of open instances, for the gauge `caudal_rest_proxy_consumer_instances`."""
        return len(self._active)

    # --- lifetime ---

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Maintain the instances while the block runs; at its end all leave their groups."""
        await self._threads.run(partial(self._files.sweep, ()))
        try:
            async with asyncio.TaskGroup() as group:
                maintenance = group.create_task(self._maintain(group))
                try:
                    yield
                finally:
                    self.stop()
                    maintenance.cancel()
        finally:
            await self._close_all()

    def stop(self) -> None:
        """Let current polls return at once, and accept no new instances."""
        self._is_stopping = True

    async def create(self, group: str, asked: V2CreateInstance) -> str:
        """Create an instance; returns its name."""
        check_name("group.id", group)
        own = f"{self._settings.id}-" if self._settings.id else ""
        default = f"rest-consumer-{own}{uuid.uuid4()}"
        name = next((given for given in (asked.id, asked.name) if given is not None), default)
        check_name("name", name)
        saved = SavedInstance(group=group, name=name, config=parse(asked, self._settings))
        key = (group, name)
        async with self._lock(key):
            if key in self._active or await self._threads.run(partial(self._files.load, group, name)) is not None:
                raise errors.already_exists()
            self._check_room()
            try:
                active = await self._open(saved)
            except ClientError as error:
                raise ProxyError(42204, f"Invalid consumer configuration: {error}") from error
            self._expired.pop(key, None)
            await active.call(Instance.save)
        return name

    async def delete(self, group: str, name: str) -> None:
        """Delete an instance: it leaves its group at once."""
        arrived_at = time.monotonic()
        active = await self._get(group, name)
        async with self._lock((group, name)):
            if active.is_closed:
                raise errors.not_found()
            self._active.pop((group, name), None)
            await active.close(arrived_at=arrived_at)
            await self._threads.run(partial(self._files.remove, group, name))

    def _check_room(self) -> None:
        if self._is_stopping:
            raise unavailable("The proxy is shutting down")
        limit = self._settings.consumer_instances_max
        if len(self._active) >= limit:
            raise too_many(
                f"There are {limit} consumer instances already (consumer.instances.max): delete one, or wait until one"
                " expires"
            )

    async def _open(self, saved: SavedInstance) -> ActiveInstance:
        """Open an instance; raises ClientError."""
        instance = await self._threads.run(
            partial(Instance, saved, connect=partial(self._connect, saved), files=self._files)
        )
        active = self._active[saved.group, saved.name] = ActiveInstance(instance, self._threads)
        return active

    def _connect(self, saved: SavedInstance) -> GroupConsumer:
        settings = self._settings.kafka(self._settings.consumer_properties)
        defaults: Configuration = {
            **_PROPERTIES,
            "max.poll.interval.ms": min(_DAY_MS, max(300_000, 2 * self._timeout_ms)),
            "client.id": saved.name,
        }
        own: Configuration = {**saved.config.properties, "auto.offset.reset": saved.config.auto_offset_reset}
        return GroupConsumer(settings, group_id=saved.group, defaults=defaults, properties=own)

    async def _get(self, group: str, name: str) -> ActiveInstance:
        """An open instance; one that was saved before a restart is opened again. Raises ProxyError."""
        key = (group, name)
        if found := self._active.get(key):
            return found
        async with self._lock(key):
            if found := self._active.get(key):
                return found
            saved = await self._threads.run(partial(self._files.load, group, name))
            if saved is None:
                raise await self._not_found(key)
            self._check_room()
            log.info("saved consumer instance is opened again", extra={"group": group, "instance": name})
            try:
                return await self._open(saved)
            except ClientError as error:
                raise self._threads.map_error(error) from error

    @asynccontextmanager
    async def _lock(self, key: Key) -> AsyncIterator[None]:
        """Keep others from opening or closing this instance meanwhile."""
        self._lock_users[key] += 1
        try:
            async with self._locks.setdefault(key, asyncio.Lock()):
                yield
        finally:
            self._lock_users[key] -= 1
            if not self._lock_users[key]:
                del self._lock_users[key], self._locks[key]

    async def _not_found(self, key: Key) -> ProxyError:
        """The error for a missing instance, with the reason if it is known."""
        if key in self._expired or await self._threads.run(partial(self._files.is_expired, *key)):
            return errors.not_found(
                f"It has expired: it got no request for {self._timeout_ms} ms (consumer.instance.timeout.ms)."
            )
        if not self._files.is_kept:
            return errors.not_found(
                "If it existed before: instances do not survive a restart of this proxy (state.dir is empty)."
            )
        return errors.not_found()

    # --- requests of clients ---

    async def use(self, group: str, name: str, call: Callable[[Instance], T], *, is_remote: bool = True) -> T:
        """Call an instance on a thread, after other calls; `is_remote` if the call needs the cluster."""
        active = await self._get(group, name)
        with active.in_use():
            if is_remote:
                await self._threads.check_cluster()
            return await active.call(call)

    async def seek(
        self, group: str, name: str, *, offsets: Mapping[TopicPartition, int], times: Mapping[TopicPartition, int]
    ) -> None:
        """Move an instance to other offsets; waits for the group to assign partitions first."""
        arrived_at = time.monotonic()
        active = await self._get(group, name)
        with active.in_use():
            await self._threads.check_cluster()
            while active.instance.is_waiting_for_group and time.monotonic() < arrived_at + JOIN_SECONDS:
                await active.call(partial(Instance.keep_alive, is_idle=False))
                await asyncio.sleep(0.02)
            await active.call(partial(Instance.seek, offsets=offsets, times=times, arrived_at=arrived_at))

    async def commit(self, group: str, name: str, commits: Mapping[TopicPartition, Commit] | None) -> None:
        """Commit these offsets, or all that the client has received."""
        await self.use(group, name, partial(Instance.commit, commits=commits, arrived_at=time.monotonic()))

    async def assigned(self, group: str, name: str) -> Sequence[TopicPartition]:
        """The partitions that an instance reads."""

        def get_assigned(instance: Instance) -> Sequence[TopicPartition]:
            instance.keep_alive(is_idle=False)
            return instance.assigned

        return await self.use(group, name, get_assigned, is_remote=False)

    async def format_of(self, group: str, name: str) -> Format:
        """The format of an instance's keys and values."""
        return (await self._get(group, name)).instance.config.format

    async def poll(
        self, group: str, name: str, *, timeout_ms: int | None, max_bytes: int | None, client: Client
    ) -> bytes:
        """The next records as JSON; without `timeout_ms`, the instance's own time-out applies."""
        active = await self._get(group, name)
        limit = self._settings.consumer_request_max_bytes
        decoder = self._decoders[active.instance.config.format]
        poll = Poll(active, self._threads, decoder, timeout_ms=timeout_ms, max_bytes=min(max_bytes or limit, limit))
        with active.in_use():
            body, count = await poll.answer(
                client, is_plain=self._settings.api_v2_plain_records, is_stopping=lambda: self._is_stopping
            )
        self._metrics.add_consumed(active.instance.config.format, "instance", count)
        return body

    # --- maintenance ---

    async def _maintain(self, group: asyncio.TaskGroup) -> None:
        """Keep idle instances alive in their groups, and close those that have expired."""
        timeout = self._timeout_ms / 1000
        swept_at = time.monotonic()
        while True:
            await asyncio.sleep(min(_KEEP_ALIVE_SECONDS, timeout / 4))
            for key, active in list(self._active.items()):
                if active.is_idle and time.monotonic() - active.used_at >= timeout:
                    self._expire(key, active)
                    group.create_task(self._close_expired(key, active))
                else:
                    group.create_task(self._keep_alive(active))
            if time.monotonic() - swept_at >= _SWEEP_SECONDS:
                swept_at = time.monotonic()
                group.create_task(self._threads.run(partial(self._files.sweep, tuple(self._active))))

    async def _keep_alive(self, active: ActiveInstance) -> None:
        now = time.monotonic()
        if not active.is_idle or active.used_at > active.touched_at:
            active.touched_at = now
            await self._threads.run(partial(self._files.touch, active.instance.group, active.instance.name))
        if active.is_idle:
            try:
                await active.call(partial(Instance.keep_alive, is_idle=now - active.used_at > _IDLE_SECONDS))
            except ProxyError as error:
                log.debug(
                    "idle consumer instance could not be kept alive",
                    extra={"group": active.instance.group, "reason": error.message},
                )

    def _expire(self, key: Key, active: ActiveInstance) -> None:
        log.info("consumer instance has expired", extra={"group": key[0], "instance": key[1]})
        self._active.pop(key, None)
        active.is_closed = True
        self._expired[key] = None
        if len(self._expired) > _EXPIRED_MAX:
            self._expired.popitem(last=False)

    async def _close_expired(self, key: Key, active: ActiveInstance) -> None:
        async with self._lock(key):
            await active.close()
            if key not in self._active:  # A client may have created it anew meanwhile.
                await self._threads.run(partial(self._files.remove, *key))

    async def _close_all(self) -> None:
        """Let all instances leave their groups; their files stay for the next start."""
        closing = [active.close() for active in self._active.values()]
        self._active.clear()
        try:
            async with asyncio.timeout(max(1.0, self._settings.shutdown_timeout_ms / 1000)):
                await asyncio.gather(*closing)
        except TimeoutError:
            log.warning("consumer instances did not leave their groups in time")
        self._threads.shutdown()
