"""Heartbeats of brokers: the states of a broker, and the sessions, which only the active controller remembers."""

from collections.abc import Callable, Iterable
from enum import Enum

import msgspec

from core_broker.cluster.metadata import BrokerImage
from core_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from core_broker.service.settings import LONG_MAX


class BrokerState(Enum):
    """What a broker may do."""

    FENCED = "fenced"
    """Starting, or not heard of for too long: it is in no ISR and leads nothing."""
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    """Stopping: it waits until others have taken over, and know that they have."""
    SHUTDOWN_NOW = "shutdown now"
    """Fenced, and free to stop."""


def state_of(broker: BrokerImage) -> BrokerState:
    """The state that the metadata give a broker."""
    if broker.is_fenced:
        return BrokerState.FENCED
    return BrokerState.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else BrokerState.UNFENCED


def has_caught_up(broker: BrokerImage, request: BrokerHeartbeatRequest) -> bool:
    """Whether a broker has applied the metadata up to its own registration, whose offset is its epoch."""
    return request.current_metadata_offset >= broker.epoch


def next_state(
    broker: BrokerImage,
    request: BrokerHeartbeatRequest,
    *,
    leads: Callable[[], bool],
    is_handover_known: Callable[[], bool],
) -> BrokerState:
    """The state after a heartbeat.

    `leads` says whether the broker leads a partition, `is_handover_known` whether every other broker has applied the
    change that took its partitions away. Both are asked only while the broker wants to stop.
    """
    match state_of(broker):
        case BrokerState.FENCED:
            if request.want_shut_down:
                return BrokerState.SHUTDOWN_NOW
            may_begin = not request.want_fence and has_caught_up(broker, request)
            return BrokerState.UNFENCED if may_begin else BrokerState.FENCED
        case BrokerState.UNFENCED:
            if request.want_fence:
                return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
            if request.want_shut_down:
                return BrokerState.CONTROLLED_SHUTDOWN if leads() else BrokerState.SHUTDOWN_NOW
            return BrokerState.UNFENCED
        case _:
            is_done = not leads() and is_handover_known()
            return BrokerState.SHUTDOWN_NOW if is_done else BrokerState.CONTROLLED_SHUTDOWN


class _Session(msgspec.Struct):
    epoch: int
    seen_at: float
    metadata_offset: int = -1
    shutdown_offset: int | None = None


class Sessions:
    """When each broker was last heard of, and how far it has applied the metadata. Times are monotonic seconds."""

    def __init__(self, session_seconds: float) -> None:
        self.session_seconds = session_seconds
        self._sessions: dict[int, _Session] = {}

    def touch(self, broker_id: int, epoch: int, now: float, *, metadata_offset: int = -1) -> None:
        """Note a sign of life."""
        session = self._sessions.get(broker_id)
        if session is None or session.epoch != epoch:
            self._sessions[broker_id] = _Session(epoch, now, metadata_offset)
            return
        session.seen_at = now
        session.metadata_offset = max(session.metadata_offset, metadata_offset)

    def is_valid(self, broker_id: int, epoch: int, now: float) -> bool:
        """Whether this incarnation of a broker was heard of lately."""
        session = self._sessions.get(broker_id)
        return session is not None and session.epoch == epoch and now - session.seen_at < self.session_seconds

    def expired(self, now: float) -> list[int]:
        """The brokers that were not heard of for the length of a session, those silent for longest first."""
        late = [(s.seen_at, broker_id) for broker_id, s in self._sessions.items()]
        return [broker_id for seen_at, broker_id in sorted(late) if now - seen_at >= self.session_seconds]

    def restart(self, now: float) -> None:
        """Restart every session: while this process was suspended it received no heartbeats."""
        for session in self._sessions.values():
            session.seen_at = max(session.seen_at, now)

    def begin_shutdown(self, broker_id: int, offset: int) -> None:
        """Note up to which offset others must have applied the metadata before this broker may stop."""
        session = self._sessions.get(broker_id)
        if session is not None and session.shutdown_offset is None:
            session.shutdown_offset = offset

    def shutdown_offset(self, broker_id: int) -> int:
        """The offset of the broker's controlled shutdown; -1 if there is none."""
        session = self._sessions.get(broker_id)
        return -1 if session is None or session.shutdown_offset is None else session.shutdown_offset

    def lowest_active_offset(self, active: Iterable[int]) -> int:
        """The metadata offset that each of these brokers has applied."""
        found = (self._sessions.get(broker_id) for broker_id in active)
        return min((-1 if session is None else session.metadata_offset for session in found), default=LONG_MAX)

    def remove(self, broker_id: int) -> None:
        """Forget a broker."""
        self._sessions.pop(broker_id, None)

    def clear(self) -> None:
        """Forget all brokers: another controller listens to them."""
        self._sessions.clear()
