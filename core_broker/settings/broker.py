"""All settings of a broker in one class."""

import socket
from collections.abc import Iterable, Iterator
from typing import ClassVar

from typing_extensions import override

from core_broker.service.settings import Problem
from core_broker.settings.cluster import NO_OTHER_NODE, NO_REPLICATION, ClusterSettings
from core_broker.settings.coordinators import GroupCoordinatorSettings, TransactionSettings
from core_broker.settings.listeners import Listener
from core_broker.settings.log import LogSettings
from core_broker.settings.network import PROTOCOLS, NetworkSettings
from core_broker.settings.schema_guard import SchemaGuardSettings
from core_broker.settings.without_effect import SECURITY, THREADS, WITHOUT_EFFECT


class BrokerSettings(
    ClusterSettings,
    NetworkSettings,
    LogSettings,
    GroupCoordinatorSettings,
    TransactionSettings,
    SchemaGuardSettings,
):
    """The settings of a broker."""

    IGNORED: ClassVar[dict[str, str]] = {
        **{key: definition.without_effect for key, definition in WITHOUT_EFFECT.items()},
        "num.replica.alter.log.dirs.threads": "one thread copies all partitions that move",
        "auto.leader.rebalance.enable": NO_REPLICATION,
        "broker.heartbeat.interval.ms": NO_OTHER_NODE,
        "broker.session.timeout.ms": NO_OTHER_NODE,
        "connection.failed.authentication.delay.ms": SECURITY,
        "controlled.shutdown.*": "there is no other broker to hand leadership to",
        "controller.quorum.append.linger.ms": "changes that arrive during a write share the next one",
        "controller.quorum.auto.join.enable": NO_OTHER_NODE,
        "controller.quorum.election.backoff.max.ms": NO_OTHER_NODE,
        "controller.quorum.election.timeout.ms": NO_OTHER_NODE,
        "controller.quorum.fetch.timeout.ms": NO_OTHER_NODE,
        "controller.quorum.request.timeout.ms": NO_OTHER_NODE,
        "controller.quorum.retry.backoff.ms": NO_OTHER_NODE,
        "initial.broker.registration.timeout.ms": NO_OTHER_NODE,
        "leader.imbalance.*": NO_REPLICATION,
        "metadata.log.max.snapshot.interval.ms": "a snapshot follows every change within seconds",
        "metadata.max.idle.interval.ms": "there is no other controller that waits for records",
        "metadata.max.retention.bytes": "the two newest metadata snapshots are kept, with the log that they need",
        "metadata.max.retention.ms": "the two newest metadata snapshots are kept, with the log that they need",
        "replica.fetch.*": NO_REPLICATION,
        "replica.lag.time.max.ms": NO_REPLICATION,
        "replica.selector.class": NO_REPLICATION,
        "replica.socket.*": NO_REPLICATION,
        "request.timeout.ms": NO_OTHER_NODE,
        "group.consumer.regex.refresh.interval.ms": "regular expressions are resolved after every change of topics",
        "offsets.topic.compression.codec": "__consumer_offsets is not compressed",
        "offsets.load.buffer.size": "a coordinator loads its partition batch by batch",
        "transaction.state.log.load.buffer.size": "a coordinator loads its partition batch by batch",
        "log.initial.task.delay.ms": "background work on the log starts after its first interval",
        "queued.max.requests": "a connection processes one request at a time and reads no more meanwhile",
        "quota.window.*": "quotas are not supported yet",
        "group.coordinator.threads": THREADS,
        "group.coordinator.background.threads": THREADS,
        "group.coordinator.append.linger.ms": "a coordinator writes immediately",
        "transaction.state.log.compression.codec": "the transaction log is not compressed",
        "log.dir.failure.timeout.ms": "a failed log directory stops the broker immediately",
        "metrics.num.samples": "metrics are served at metrics.listener",
        "metrics.recording.level": "metrics are served at metrics.listener",
        "metrics.sample.window.ms": "metrics are served at metrics.listener",
        "auto.include.jmx.reporter": "metrics are served at metrics.listener",
        "share.coordinator.*": "share groups are not supported",
        "group.share.*": "share groups are not supported",
        "group.streams.*": "streams groups are not supported",
        "remote.log.*": "tiered storage is not supported",
        "unstable.api.versions.enable": "unstable APIs are not supported",
        "unstable.feature.versions.enable": "unstable features are not supported",
        "confluent.support.*": "no telemetry is sent",
        "confluent.metrics.*": "no telemetry is sent",
        "confluent.balancer.*": "there is no balancer",
        "confluent.license*": "no license is needed",
    }
    REFUSED: ClassVar[dict[str, str]] = {
        "zookeeper.*": "there is no ZooKeeper; remove it",
        "remote.log.storage.system.enable": "tiered storage is not supported; remove it",
        "ssl.*": SECURITY,
        "sasl.*": SECURITY,
        "listener.name.*": SECURITY,
        "authorizer.class.name": SECURITY,
        "super.users": SECURITY,
        "connections.max.reauth.ms": SECURITY,
        "client.quota.callback.class": "quotas are not supported yet; remove it",
        "allow.everyone.if.no.acl.found": SECURITY,
        "create.topic.policy.class.name": "policies are not supported; remove it",
        "alter.config.policy.class.name": "policies are not supported; remove it",
    }

    @property
    def broker_listeners(self) -> tuple[Listener, ...]:
        """The listeners that clients use: all but the controller's."""
        return tuple(item for item in self.listeners if item.name not in self.controller_listener_names)

    def security_protocol(self, listener_name: str) -> str | None:
        """The protocol of a listener, None if it is not in the map."""
        return dict(self.listener_security_protocol_map).get(listener_name)

    @override
    def problems(self) -> Iterable[Problem]:
        """Rules between keys."""
        yield from self._listener_problems()
        yield from self._quorum_problems()
        yield from self._registry_problems()
        yield from self._range_problems("group.{}.session.timeout.ms")
        yield from self._range_problems("group.consumer.{}.session.timeout.ms")
        yield from self._range_problems("group.consumer.{}.heartbeat.interval.ms")

    def _listener_problems(self) -> Iterator[Problem]:
        if "broker" in self.process_roles and not self.broker_listeners:
            yield self._problem("listeners", "must contain a listener that is not one of controller.listener.names")
        for listener in self.listeners:
            yield from self._protocol_problems(listener)
        names = {listener.name for listener in self.broker_listeners}
        for advertised in self.advertised_listeners or ():
            if advertised.name not in names and advertised.name not in self.controller_listener_names:
                yield self._problem("advertised.listeners", f"{advertised.name} must also be one of listeners")
            if advertised.host in ("", "0.0.0.0", "::"):
                yield self._problem("advertised.listeners", "must contain a host that clients can connect to")
        if self.inter_broker_listener_name and self.inter_broker_listener_name not in names:
            yield self._problem("inter.broker.listener.name", f"must be one of {', '.join(sorted(names))}")

    def _protocol_problems(self, listener: Listener) -> Iterator[Problem]:
        protocol = self.security_protocol(listener.name)
        if protocol is None:
            reason = f"listener.security.protocol.map must contain the protocol of {listener.name}"
            yield self._problem("listeners", reason)
        elif protocol not in PROTOCOLS:
            yield self._problem("listener.security.protocol.map", f"protocols are {', '.join(PROTOCOLS)}")
        elif protocol != "PLAINTEXT":
            yield self._problem("listeners", f"{listener.name} uses {protocol}, but {SECURITY}")

    def _quorum_problems(self) -> Iterator[Problem]:
        """Nodes configured as one cluster must not start as several, so other controllers are rejected."""
        if any(voter.partition("@")[0] != str(self.node_id) for voter in self.controller_quorum_voters):
            allowed = f"only node.id={self.node_id} is allowed, as {self.node_id}@host:port"
            yield self._problem("controller.quorum.voters", f"{allowed}; {NO_OTHER_NODE}")
        if not all(map(self._is_own_controller, self.controller_quorum_bootstrap_servers)):
            allowed = "only the controller listener of this node is allowed, as host:port"
            yield self._problem("controller.quorum.bootstrap.servers", f"{allowed}; {NO_OTHER_NODE}")

    def _is_own_controller(self, address: str) -> bool:
        host, _, port = address.lower().rpartition(":")
        own_hosts = {listener.host.lower() for listener in (*self.listeners, *(self.advertised_listeners or ()))}
        own_hosts |= {"localhost", "127.0.0.1", "::1", socket.gethostname().lower()}
        # In Kubernetes the full name of a pod begins with the name of its machine.
        is_own_host = not own_hosts.isdisjoint((host.strip("[]"), host.partition(".")[0]))
        own_ports = {str(item.port) for item in self.listeners if item.name in self.controller_listener_names}
        return is_own_host and port in own_ports

    def _registry_problems(self) -> Iterator[Problem]:
        if self.confluent_basic_auth_credentials_source == "USER_INFO" and not self.confluent_basic_auth_user_info:
            reason = "confluent.basic.auth.user.info must be user:password"
            yield self._problem("confluent.basic.auth.credentials.source", reason)

    def _range_problems(self, pattern: str) -> Iterator[Problem]:
        low, high = pattern.format("min"), pattern.format("max")
        minimum, maximum = (getattr(self, key.replace(".", "_")) for key in (low, high))
        if minimum > maximum:
            yield self._problem(low, f"must be at most {high}={maximum}")

    def _problem(self, key: str, reason: str) -> Problem:
        return Problem(key=key, value=self.text_of(key) or "", reason=reason)
