"""Keeps this node's entry among the voters true: it joins the quorum by itself if asked to (KIP-853, KIP-1186), and
says where it listens when that has changed."""

import asyncio
import logging
from typing import Final

from core_broker.cluster.controller_channel import ControllerChannel
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import add_raft_voter, remove_raft_voter, update_raft_voter
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS: Final = 5.0


class QuorumMembership:
    """The voter that this node is or wants to be."""

    def __init__(
        self,
        quorum: MetadataQuorum,
        channel: ControllerChannel,
        *,
        settings: BrokerSettings,
    ) -> None:
        self._quorum = quorum
        self._channel = channel
        self._settings = settings
        self._key = quorum.local.key
        self._endpoints = quorum.local.endpoints

    async def run(self) -> None:
        """Check every now and then until cancelled; nothing to do for voters of the settings, which never change."""
        if self._settings.static_voters or not self._settings.is_controller or not self._endpoints:
            return
        while True:
            request = self._next_request()
            if request is not None:
                await self._send(request)
            await asyncio.sleep(self._settings.controller_quorum_fetch_timeout_ms / 2000)

    def _next_request(self) -> Message | None:
        quorum = self._quorum
        voter = quorum.voters.get(self._key.id)
        if quorum.is_leader or not len(quorum.voters):
            return None
        if voter is None:
            if not self._settings.controller_quorum_auto_join_enable:
                return None
            listeners = [add_raft_voter.Listener(name, *address) for name, address in self._endpoints]
            return add_raft_voter.AddRaftVoterRequest(
                cluster_id=quorum.cluster_id,
                timeout_ms=int(_TIMEOUT_SECONDS * 1000),
                voter_id=self._key.id,
                voter_directory_id=self._key.directory,
                listeners=listeners,
            )
        if voter.key != self._key:
            # This node had another disk when it became a voter. As long as that one counts, the quorum lacks a voter.
            if not self._settings.controller_quorum_auto_join_enable:
                return None
            return remove_raft_voter.RemoveRaftVoterRequest(
                cluster_id=quorum.cluster_id, voter_id=voter.key.id, voter_directory_id=voter.key.directory
            )
        if voter.endpoints != self._endpoints:
            return update_raft_voter.UpdateRaftVoterRequest(
                cluster_id=quorum.cluster_id,
                current_leader_epoch=quorum.leader_epoch,
                voter_id=self._key.id,
                voter_directory_id=self._key.directory,
                listeners=[update_raft_voter.Listener(name, *address) for name, address in self._endpoints],
                kraft_version_feature=update_raft_voter.KRaftVersionFeature(0, 1),
            )
        return None

    async def _send(self, request: Message) -> None:
        name = type(request).__name__
        try:
            response = await self._channel.call(request, timeout_seconds=_TIMEOUT_SECONDS)
        except BrokerError as error:
            log.info("voters not changed yet", extra={"request": name, "error": error.code.name})
            return
        assert isinstance(
            response,
            add_raft_voter.AddRaftVoterResponse
            | remove_raft_voter.RemoveRaftVoterResponse
            | update_raft_voter.UpdateRaftVoterResponse,
        )
        code = ErrorCode(response.error_code)
        if code is ErrorCode.NONE and isinstance(response, remove_raft_voter.RemoveRaftVoterResponse):
            log.info("the former disk of this node is no longer a voter of the metadata quorum")
        elif code is ErrorCode.NONE:
            log.info("this node is a voter of the metadata quorum")
        elif code is not ErrorCode.DUPLICATE_VOTER:
            log.info("voters not changed yet", extra={"request": name, "error": code.name})
