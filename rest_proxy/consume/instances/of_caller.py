"""The consumer instances that one caller meets: its own. Those of others are not found, whatever their names are."""

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from core_broker.client.consumer import TopicPartition
from core_broker.client.group_consumer import Commit
from rest_proxy.consume.instances.active import ActiveInstance
from rest_proxy.consume.instances.config import check_name, parse
from rest_proxy.consume.instances.instance import Instance
from rest_proxy.consume.instances.instances import Instances
from rest_proxy.consume.instances.poll import JOIN_SECONDS, Client, Poll
from rest_proxy.consume.instances.state import Key, SavedInstance
from rest_proxy.formats.decoding import Decoder
from rest_proxy.formats.formats import Format
from rest_proxy.identity import Identity
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.models.v2.consumers import V2CreateInstance
from rest_proxy.settings import ProxySettings

T = TypeVar("T")


class CallerInstances:
    """What the routes do with instances, as one identity."""

    def __init__(
        self,
        instances: Instances,
        identity: Identity,
        settings: ProxySettings,
        *,
        decoders: Mapping[Format, Decoder],
        metrics: ProxyMetrics,
    ) -> None:
        self._instances = instances
        self._identity = identity
        self._settings = settings
        self._decoders = decoders
        self._metrics = metrics

    async def create(self, group: str, asked: V2CreateInstance) -> str:
        """Create an instance; returns its name."""
        check_name("group.id", group)
        own = f"{self._settings.id}-" if self._settings.id else ""
        default = f"rest-consumer-{own}{uuid.uuid4()}"
        name = next((given for given in (asked.id, asked.name) if given is not None), default)
        check_name("name", name)
        config = parse(asked, self._settings)
        saved = SavedInstance(group=group, name=name, owner=self._identity.owner, config=config)
        await self._instances.create(saved, self._identity)
        return name

    async def delete(self, group: str, name: str) -> None:
        """Delete an instance: it leaves its group at once."""
        await self._instances.delete(Key(self._identity.owner, group, name), self._identity)

    async def _get(self, group: str, name: str) -> ActiveInstance:
        return await self._instances.get(Key(self._identity.owner, group, name), self._identity)

    async def use(self, group: str, name: str, call: Callable[[Instance], T], *, is_remote: bool = True) -> T:
        """Call an instance on a thread, after other calls; `is_remote` if the call needs the cluster."""
        active = await self._get(group, name)
        with active.in_use():
            if is_remote:
                await self._instances.threads.check_cluster()
            return await active.call(call)

    async def seek(
        self, group: str, name: str, *, offsets: Mapping[TopicPartition, int], times: Mapping[TopicPartition, int]
    ) -> None:
        """Move an instance to other offsets; waits for the group to assign partitions first."""
        arrived_at = time.monotonic()
        active = await self._get(group, name)
        with active.in_use():
            await self._instances.threads.check_cluster()
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
        poll = Poll(
            active, self._instances.threads, decoder, timeout_ms=timeout_ms, max_bytes=min(max_bytes or limit, limit)
        )
        with active.in_use():
            body, count = await poll.answer(
                client, is_plain=self._settings.api_v2_plain_records, is_stopping=lambda: self._instances.is_stopping
            )
        self._metrics.add_consumed(active.instance.config.format, "instance", count)
        return body
