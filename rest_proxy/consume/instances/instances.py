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
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from core_broker.client.errors import ClientError, NotAllowed
from core_broker.client.group_consumer import GroupConsumer
from core_broker.client.reachability import Reachability
from core_broker.client.settings import Configuration
from core_broker.service.clock import SystemClock
from rest_proxy.consume.instances import errors
from rest_proxy.consume.instances.active import ActiveInstance, Threads
from rest_proxy.consume.instances.instance import Instance
from rest_proxy.consume.instances.state import InstanceFiles, Key, SavedInstance
from rest_proxy.errors import ProxyError, too_many, unavailable
from rest_proxy.identity import Identity
from rest_proxy.settings import ProxySettings

log = logging.getLogger(__name__)

_KEEP_ALIVE_SECONDS, _IDLE_SECONDS, _SWEEP_SECONDS = 1.0, 5.0, 60.0
_LEAVING_SECONDS = 2.5
"""How long before its token expires a consumer leaves its group: afterwards it could not, and others would wait."""
_EXPIRED_MAX = 1000
_REFUSALS = (401, 403)
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

    def __init__(self, settings: ProxySettings, *, reachability: Reachability) -> None:
        self._settings = settings
        self._timeout_ms = settings.consumer_instance_timeout_ms
        self._files = InstanceFiles(settings.state_dir, timeout_ms=self._timeout_ms, clock=SystemClock())
        self._active: dict[Key, ActiveInstance] = {}
        self._expired: OrderedDict[Key, None] = OrderedDict()
        self._locks: dict[Key, asyncio.Lock] = {}
        self._lock_users: Counter[Key] = Counter()
        self.threads = Threads(settings.consumer_instances_max, reachability=reachability, address=settings.address)
        self.is_stopping = False
        """Whether polls should return at once."""

    @property
    def count(self) -> int:
        """The number of open instances, for the gauge `caudal_rest_proxy_consumer_instances`."""
        return len(self._active)

    # --- lifetime ---

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Maintain the instances while the block runs; at its end all leave their groups."""
        await self.threads.run(partial(self._files.sweep, ()))
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
        self.is_stopping = True

    async def create(self, saved: SavedInstance, identity: Identity) -> None:
        """Create an instance; raises ProxyError."""
        key = saved.key
        async with self._lock(key):
            if key in self._active or await self.threads.run(partial(self._files.load, key)) is not None:
                raise errors.already_exists()
            self._check_room(key.owner)
            try:
                active = await self._open(saved, identity)
            except NotAllowed as error:
                raise self.threads.map_error(error) from error
            except ClientError as error:
                raise ProxyError(42204, f"Invalid consumer configuration: {error}") from error
            self._expired.pop(key, None)
            await active.call(Instance.save)

    async def delete(self, key: Key, identity: Identity) -> None:
        """Delete an instance: it leaves its group at once."""
        arrived_at = time.monotonic()
        active = await self.get(key, identity)
        async with self._lock(key):
            if active.is_closed:
                raise errors.not_found()
            self._active.pop(key, None)
            await active.close(arrived_at=arrived_at)
            await self.threads.run(partial(self._files.remove, key))

    def _check_room(self, owner: str) -> None:
        if self.is_stopping:
            raise unavailable("The proxy is shutting down")
        limit = self._settings.consumer_instances_max
        if len(self._active) >= limit:
            raise too_many(
                f"There are {limit} consumer instances already (consumer.instances.max): delete one, or wait until one"
                " expires"
            )
        own_limit = self._settings.caller_consumer_instances_max
        if owner and sum(key.owner == owner for key in self._active) >= own_limit:
            raise too_many(
                f"You have {own_limit} consumer instances already (caller.consumer.instances.max): delete one, or wait"
                " until one expires"
            )

    async def _open(self, saved: SavedInstance, identity: Identity) -> ActiveInstance:
        """Open an instance; raises ClientError."""
        connect = partial(self._connect, saved, identity)
        instance = await self.threads.run(partial(Instance, saved, connect=connect, files=self._files))
        active = self._active[saved.key] = ActiveInstance(instance, identity, self.threads)
        return active

    def _connect(self, saved: SavedInstance | Instance, identity: Identity) -> GroupConsumer:
        identity.check()
        settings = identity.kafka(self._settings.consumer_properties)
        defaults: Configuration = {
            **_PROPERTIES,
            "max.poll.interval.ms": min(_DAY_MS, max(300_000, 2 * self._timeout_ms)),
            "client.id": saved.name,
        }
        own: Configuration = {**saved.config.properties, "auto.offset.reset": saved.config.auto_offset_reset}
        return GroupConsumer(settings, group_id=saved.group, defaults=defaults, properties=own)

    async def get(self, key: Key, identity: Identity) -> ActiveInstance:
        """An open instance; one that was saved before a restart is opened again. Raises ProxyError."""
        found = self._active.get(key) or await self._reopened(key, identity)
        if found.identity is not identity:
            await found.connect_by(identity, partial(self._connect, found.instance, identity))
        return found

    async def _reopened(self, key: Key, identity: Identity) -> ActiveInstance:
        async with self._lock(key):
            if found := self._active.get(key):
                return found
            saved = await self.threads.run(partial(self._files.load, key))
            if saved is None:
                raise await self._not_found(key)
            self._check_room(key.owner)
            log.info("saved consumer instance is opened again", extra={"group": key.group, "instance": key.name})
            try:
                return await self._open(saved, identity)
            except ClientError as error:
                raise self.threads.map_error(error) from error

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
        if key in self._expired or await self.threads.run(partial(self._files.is_expired, key)):
            return errors.not_found(
                f"It has expired: it got no request for {self._timeout_ms} ms (consumer.instance.timeout.ms)."
            )
        if not self._files.is_kept:
            return errors.not_found(
                "If it existed before: instances do not survive a restart of this proxy (state.dir is empty)."
            )
        return errors.not_found()

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
                group.create_task(self.threads.run(partial(self._files.sweep, tuple(self._active))))

    async def _keep_alive(self, active: ActiveInstance) -> None:
        now = time.monotonic()
        if not active.is_idle or active.used_at > active.touched_at:
            active.touched_at = now
            await self.threads.run(partial(self._files.touch, active.instance.key))
        if active.identity.expires_within(_LEAVING_SECONDS):
            await active.suspend()
        elif active.is_idle and not active.instance.is_suspended:
            try:
                await active.call(partial(Instance.keep_alive, is_idle=now - active.used_at > _IDLE_SECONDS))
            except ProxyError as error:
                if error.status in _REFUSALS:
                    active.refusal = error
                log.debug(
                    "idle consumer instance could not be kept alive",
                    extra={"group": active.instance.group, "reason": error.message},
                )

    def _expire(self, key: Key, active: ActiveInstance) -> None:
        log.info("consumer instance has expired", extra={"group": key.group, "instance": key.name})
        self._active.pop(key, None)
        active.is_closed = True
        self._expired[key] = None
        if len(self._expired) > _EXPIRED_MAX:
            self._expired.popitem(last=False)

    async def _close_expired(self, key: Key, active: ActiveInstance) -> None:
        async with self._lock(key):
            await active.close()
            if key not in self._active:  # A client may have created it anew meanwhile.
                await self.threads.run(partial(self._files.remove, key))

    async def _close_all(self) -> None:
        """Let all instances leave their groups; their files stay for the next start."""
        closing = [active.close() for active in self._active.values()]
        self._active.clear()
        try:
            async with asyncio.timeout(max(1.0, self._settings.shutdown_timeout_ms / 1000)):
                await asyncio.gather(*closing)
        except TimeoutError:
            log.warning("consumer instances did not leave their groups in time")
        self.threads.shutdown()
