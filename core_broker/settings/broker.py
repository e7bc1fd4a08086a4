"""All settings of a broker in one class."""

import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from msgspec.structs import replace
from typing_extensions import override

from core_broker.service.settings import Problem, Properties, SettingsError, gathered
from core_broker.settings.authorization import AuditSettings, AuthorizationSettings
from core_broker.settings.cluster import ClusterSettings
from core_broker.settings.coordinators import GroupCoordinatorSettings, TransactionSettings
from core_broker.settings.delegation_tokens import DelegationTokenSettings
from core_broker.settings.listener_overrides import (
    PREFIX,
    base_key,
    is_of_listener,
    parse_overrides,
    split_listener_key,
)
from core_broker.settings.listeners import Listener
from core_broker.settings.log import LogSettings
from core_broker.settings.network import ENCRYPTED, PROTOCOLS, NetworkSettings
from core_broker.settings.node_connections import (
    MECHANISM_OF_BROKERS,
    MECHANISM_OF_CONTROLLERS,
    NodeConnection,
    login_problems,
    tls_problems,
)
from core_broker.settings.sasl import REFUSED as SASL_REFUSED
from core_broker.settings.sasl import SASL_PROTOCOLS, SaslSettings, client_problems
from core_broker.settings.sasl import server_problems as sasl_server_problems
from core_broker.settings.schema_guard import SchemaGuardSettings
from core_broker.settings.tls import CLIENT_AUTH_NONE, TlsSettings, server_problems
from core_broker.settings.without_effect import THREADS, WITHOUT_EFFECT


class BrokerSettings(
    ClusterSettings,
    NetworkSettings,
    TlsSettings,
    SaslSettings,
    LogSettings,
    GroupCoordinatorSettings,
    TransactionSettings,
    DelegationTokenSettings,
    SchemaGuardSettings,
    AuthorizationSettings,
    AuditSettings,
):
    """The settings of a broker."""

    listener_overrides: Properties = gathered(PREFIX, default=())
    """Settings of one listener, as listener.name.external.ssl.client.auth: they go before those without this prefix.
    The listener's name is written in lower case."""

    IGNORED: ClassVar[dict[str, str]] = {
        **{key: definition.without_effect for key, definition in WITHOUT_EFFECT.items()},
        "num.replica.alter.log.dirs.threads": "one thread copies all partitions that move",
        "controlled.shutdown.max.retries": "a broker that stops waits until the controller has moved its leaders",
        "controlled.shutdown.retry.backoff.ms": "a broker that stops waits until the controller has moved its leaders",
        "controller.quorum.append.linger.ms": "changes that arrive during a write share the next one",
        "leader.imbalance.per.broker.percentage": "every leader that is not the preferred replica is an imbalance",
        "metadata.log.max.snapshot.interval.ms": "a snapshot follows every change within seconds",
        "metadata.max.retention.bytes": "the two newest metadata snapshots are kept, with the log that they need",
        "metadata.max.retention.ms": "the two newest metadata snapshots are kept, with the log that they need",
        "group.consumer.regex.refresh.interval.ms": "regular expressions are resolved after every change of topics",
        "offsets.topic.compression.codec": "__consumer_offsets is not compressed",
        "offsets.load.buffer.size": "a coordinator loads its partition batch by batch",
        "transaction.state.log.load.buffer.size": "a coordinator loads its partition batch by batch",
        "log.initial.task.delay.ms": "background work on the log starts after its first interval",
        "queued.max.requests": "a connection processes one request at a time and reads no more meanwhile",
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
        **SASL_REFUSED,
        "client.quota.callback.class": "only the quotas that AlterClientQuotas sets are supported; remove it",
        "create.topic.policy.class.name": "policies are not supported; remove it",
        "alter.config.policy.class.name": "policies are not supported; remove it",
    }

    @property
    def broker_listeners(self) -> tuple[Listener, ...]:
        """The listeners that clients use: all but the controller's."""
        return tuple(item for item in self.listeners if item.name not in self.controller_listener_names)

    @property
    def controller_listener(self) -> Listener | None:
        """The listener on which this node serves the quorum and brokers: the first of controller.listener.names that
        is in listeners. None if there is none."""
        own = {listener.name: listener for listener in self.listeners}
        return next((own[name] for name in self.controller_listener_names if name in own), None)

    @property
    def early_controller_listeners(self) -> tuple[str, ...]:
        """The controller listeners that serve before the ACLs are loaded."""
        names = self.controller_listener_names
        return (
            names if self.early_start_listeners is None else tuple(n for n in names if n in self.early_start_listeners)
        )

    @property
    def inter_broker_listener(self) -> str:
        """Name of the listener that other brokers connect to."""
        if self.inter_broker_listener_name is not None:
            return self.inter_broker_listener_name
        names = [listener.name for listener in self.broker_listeners]
        default = self.security_inter_broker_protocol
        return names[0] if names and default not in names else default

    @property
    def forms_cluster(self) -> bool:
        """Whether empty directories make this node a new cluster; otherwise it waits to join an existing one."""
        return self.is_controller and not self._names_other_nodes

    @property
    def _names_other_nodes(self) -> bool:
        if any(voter_id != self.node_id for voter_id, _, _ in self.static_voters):
            return True
        # The voter with this node's id is this node, whatever its address looks like.
        servers = self.quorum_servers if self.controller_quorum_bootstrap_servers else ()
        return not all(self._is_own_controller(host, port) for host, port in servers)

    def security_protocol(self, listener_name: str) -> str | None:
        """The protocol of a listener, None if it is not in the map."""
        return dict(self.listener_security_protocol_map).get(listener_name)

    @property
    def listener_names(self) -> frozenset[str]:
        """The names of listeners that settings may have as a prefix: those of this node, and of the whole cluster."""
        names = {listener.name for listener in self.listeners} | set(self.controller_listener_names)
        names.add(self.inter_broker_listener)
        if self.is_set("listener.security.protocol.map"):
            names |= dict(self.listener_security_protocol_map).keys()
        return frozenset(names)

    def for_listener(self, name: str) -> Self:
        """These settings as they are for one listener. It parses text: call it when settings change, not per request.

        Raises SettingsError only for changes at run time, because the start checks all of it.
        """
        values = self._overrides_of(name, "")
        if self.security_protocol(name) == "SASL_SSL" and "ssl_client_auth" not in values:
            # As in Kafka: a listener whose clients log in asks for certificates only if it is said for this listener.
            values["ssl_client_auth"] = CLIENT_AUTH_NONE
        return self.replace(**values)

    def for_mechanism(self, listener: str, mechanism: str) -> Self:
        """These settings as they are for one SASL mechanism of a listener, such as SCRAM-SHA-512.

        As in Kafka, sasl.jaas.config has a value only if it is set for the mechanism.
        """
        values = {"sasl_jaas_config": None, **self._overrides_of(listener, mechanism.lower())}
        return self.for_listener(listener).replace(**values)

    def _overrides_of(self, listener: str, mechanism: str) -> dict[str, Any]:
        """The values, by attribute, that are set for a listener, or for one SASL mechanism (lower case) on it."""
        wanted = (listener, mechanism)
        return parse_overrides(self.listener_overrides, wanted, self.listener_names, self.DEFINITIONS)

    @override
    def problems(self) -> Iterable[Problem]:
        """Rules between keys."""
        yield from self._listener_problems()
        yield from self._override_problems()
        yield from self._quorum_problems()
        yield from self._node_problems()
        yield from self._timeout_problems()
        yield from self._registry_problems()
        yield from self._range_problems("group.{}.session.timeout.ms")
        yield from self._range_problems("group.consumer.{}.session.timeout.ms")
        yield from self._range_problems("group.consumer.{}.heartbeat.interval.ms")

    def _listener_problems(self) -> Iterator[Problem]:
        if self.is_broker and not self.broker_listeners:
            yield self._problem("listeners", "must contain a listener that is not one of controller.listener.names")
        for listener in self.listeners:
            yield from self._protocol_problems(listener)
        names = {listener.name for listener in self.listeners}
        for name in sorted({*(self.early_start_listeners or ())} - names):
            yield self._problem("early.start.listeners", f"{name} must also be one of listeners")
        for advertised in self.advertised_listeners or ():
            if advertised.name not in names:
                yield self._problem("advertised.listeners", f"{advertised.name} must also be one of listeners")
            if advertised.host in ("", "0.0.0.0", "::"):
                yield self._problem("advertised.listeners", "must contain a host that clients can connect to")
        yield from self._inter_broker_problems()

    def _inter_broker_problems(self) -> Iterator[Problem]:
        name = self.inter_broker_listener_name
        if name is None:
            return
        names = [listener.name for listener in self.broker_listeners]
        if self.is_broker and name not in names:
            yield self._problem("inter.broker.listener.name", f"must be one of {', '.join(sorted(names))}")
        if self.is_set("security.inter.broker.protocol"):
            reason = "must not be set together with security.inter.broker.protocol; remove one of them"
            yield self._problem("inter.broker.listener.name", reason)

    def _protocol_problems(self, listener: Listener) -> Iterator[Problem]:
        protocol = self.security_protocol(listener.name)
        if protocol is None:
            reason = f"listener.security.protocol.map must contain the protocol of {listener.name}"
            yield self._problem("listeners", reason)
            return
        if protocol not in PROTOCOLS:
            yield self._problem("listener.security.protocol.map", f"protocols are {', '.join(PROTOCOLS)}")
            return
        if protocol in ENCRYPTED:
            yield from self._tls_problems(listener.name, protocol)
        if protocol in SASL_PROTOCOLS:
            yield from self._sasl_problems(listener.name)

    def _tls_problems(self, listener: str, protocol: str) -> Iterator[Problem]:
        try:
            settings = self.for_listener(listener)
        except SettingsError:
            return  # _override_problems reports it
        given = {f"{PREFIX}{rest}" for rest, _ in self.listener_overrides}
        for key, reason in server_problems(settings):
            own = f"{PREFIX}{listener.lower()}.{key}"
            value = "******" if self.DEFINITIONS[key].is_sensitive else settings.text_of(key) or ""
            name = own if own in given or not self.is_set(key) else key
            yield Problem(key=name, value=value, reason=f"{reason} ({listener} uses {protocol})")

    def _sasl_problems(self, listener: str) -> Iterator[Problem]:
        """Why clients, or the other nodes, could not log in at a listener."""
        try:
            mechanisms = self.for_listener(listener).sasl_enabled_mechanisms
            by_name = {mechanism: self.for_mechanism(listener, mechanism) for mechanism in mechanisms}
        except SettingsError:
            return  # _override_problems reports it
        prefix = f"{PREFIX}{listener.lower()}."
        if self.sasl_jaas_config is not None or f"{prefix[len(PREFIX) :]}sasl.jaas.config" in dict(
            self.listener_overrides
        ):
            reason = (
                f"must be set for a mechanism, as {prefix}scram-sha-512.sasl.jaas.config: Kafka ignores it otherwise"
            )
            yield Problem(key="sasl.jaas.config", value="******", reason=reason)
        if not mechanisms:
            yield self._problem("sasl.enabled.mechanisms", f"must not be empty: {listener} uses SASL")
        for mechanism, settings in by_name.items():
            for key, reason in sasl_server_problems(mechanism, settings):
                is_general = key == "sasl.enabled.mechanisms"
                name = key if is_general else f"{prefix}{mechanism.lower()}.{key}"
                value = (settings.text_of(key) or "") if is_general else "******"
                yield Problem(key=name, value=value, reason=f"{reason} ({listener})")
        yield from self._node_login_problems(listener, by_name)

    def _node_login_problems(self, listener: str, by_mechanism: Mapping[str, Self]) -> Iterator[Problem]:
        """Why other nodes could not log in at a listener of theirs."""
        key = self.login_key(listener)
        if key is None:
            return
        mechanism: str = getattr(self, key.replace(".", "_"))
        if mechanism not in by_mechanism:
            reason = f"must be one of the mechanisms of {listener}: {', '.join(by_mechanism)}"
            yield self._problem(key, reason)
            return
        for missing, reason in client_problems(mechanism, by_mechanism[mechanism]):
            name = f"{PREFIX}{listener.lower()}.{mechanism.lower()}.{missing}"
            yield Problem(key=name, value="******", reason=f"{reason} ({key}={mechanism})")

    def login_key(self, listener: str) -> str | None:
        """The key with the mechanism by which nodes log in at a listener; None if they do not connect to it."""
        if listener in self.controller_listener_names:
            return "sasl.mechanism.controller.protocol" if self._needs_controller_listener else None
        return "sasl.mechanism.inter.broker.protocol" if listener == self.inter_broker_listener else None

    @property
    def node_connections(self) -> Iterable[NodeConnection]:
        """How this node connects to others, as soon as there are any."""
        if not self._needs_controller_listener and self.controller_listener is None:
            return  # no node can join it
        own = {listener.name for listener in self.listeners}
        controllers = self.controller_listener_names[0]
        wanted = [(controllers, MECHANISM_OF_CONTROLLERS, self.sasl_mechanism_controller_protocol)]
        if self.is_broker:
            brokers = self.inter_broker_listener
            wanted.append((brokers, MECHANISM_OF_BROKERS, self.sasl_mechanism_inter_broker_protocol))
        for name, key, mechanism in wanted:
            protocol = self.security_protocol(name)
            if protocol is not None:  # reported otherwise
                yield NodeConnection(name, protocol, key, mechanism, name in own)

    def _node_problems(self) -> Iterator[Problem]:
        """Why this node could not connect to others, as far as the checks of its own listeners do not show it."""
        for connection in self.node_connections:
            name = connection.listener
            try:
                of_listener, of_mechanism = self.for_listener(name), self.for_mechanism(name, connection.mechanism)
            except SettingsError:
                continue  # _override_problems reports it
            prefix = f"{PREFIX}{name.lower()}."
            for key, reason in tls_problems(connection, of_listener):
                value = "******" if self.DEFINITIONS[key].is_sensitive else of_listener.text_of(key) or ""
                yield Problem(key=f"{prefix}{key}", value=value, reason=reason)
            if connection.is_own and self.login_key(name) is not None:
                continue  # _sasl_problems reports it
            for key, reason in login_problems(connection, of_mechanism):
                if key:
                    yield Problem(key=f"{prefix}{connection.mechanism.lower()}.{key}", value="******", reason=reason)
                else:
                    yield self._problem(connection.mechanism_key, reason)

    def _override_problems(self) -> Iterator[Problem]:
        names = self.listener_names
        for rest, text in self.listener_overrides:
            found = split_listener_key(rest, names)
            if found is None:
                known = ", ".join(sorted(name.lower() for name in names))
                reason = f"must begin with {PREFIX} and a listener, in lower case: {known}"
                yield Problem(key=f"{PREFIX}{rest}", value="******", reason=reason)
                continue
            for problem in self._problems_of_override(found.key, text):
                yield replace(problem, key=f"{PREFIX}{rest}")

    def _problems_of_override(self, key: str, text: str) -> Iterator[Problem]:
        """What is wrong with a key of a listener, given without its prefix."""
        try:
            definition = self._definition(key, text)
            if definition is not None and not definition.prefix:
                definition.parse(text)
        except SettingsError as error:
            is_known = key in self.DEFINITIONS
            # What is not known may be a password.
            yield from (found if is_known else replace(found, value="******") for found in error.problems)
            return
        if not is_of_listener(key):
            yield Problem(key=key, value="******", reason="cannot be set for one listener; remove the prefix")

    @classmethod
    @override
    def _why_ignored(cls, key: str) -> str | None:
        base = base_key(key)
        return super()._why_ignored(key if base is None else base)

    def _quorum_problems(self) -> Iterator[Problem]:
        """The rules of KRaft for each role."""
        ids = [voter_id for voter_id, _, _ in self.static_voters]
        if len(set(ids)) < len(ids):
            yield self._problem("controller.quorum.voters", "must contain each node once")
        if self.is_controller:
            yield from self._controller_problems(ids)
        else:
            yield from self._broker_only_problems(ids)
        if self._needs_controller_listener:
            for name in self.controller_listener_names:
                if self.security_protocol(name) is None:
                    reason = f"listener.security.protocol.map must contain the protocol of {name}"
                    yield self._problem("controller.listener.names", reason)

    @property
    def _needs_controller_listener(self) -> bool:
        """Whether there are connections to controllers: a cluster of one node with both roles has none."""
        return self._names_other_nodes or not (self.is_broker and self.is_controller)

    def _controller_problems(self, voter_ids: Sequence[int]) -> Iterator[Problem]:
        if voter_ids and self.node_id not in voter_ids:
            reason = f"must contain node.id={self.node_id}, because process.roles has the controller"
            yield self._problem("controller.quorum.voters", reason)
        if not self.is_broker and self.broker_listeners:
            reason = "must contain only controller.listener.names if process.roles=controller"
            yield self._problem("listeners", f"{reason}: {self._controller_names}")
        if self._needs_controller_listener:
            own = {listener.name for listener in self.listeners}
            if not own.issuperset(self.controller_listener_names):
                reason = "must contain controller.listener.names, because process.roles has the controller"
                yield self._problem("listeners", f"{reason}: {self._controller_names}")

    def _broker_only_problems(self, voter_ids: Sequence[int]) -> Iterator[Problem]:
        if not self.quorum_servers:
            reason = "must be host:port of the controllers, because process.roles=broker"
            yield self._problem("controller.quorum.bootstrap.servers", reason)
        if self.node_id in voter_ids:
            reason = f"must not contain node.id={self.node_id}, because process.roles=broker"
            yield self._problem("controller.quorum.voters", reason)
        if self.controller_listener is not None:
            reason = "must not contain controller.listener.names if process.roles=broker"
            yield self._problem("listeners", f"{reason}: {self._controller_names}")
        if self.controller_quorum_auto_join_enable:
            reason = "needs process.roles to contain controller"
            yield self._problem("controller.quorum.auto.join.enable", reason)

    @property
    def _controller_names(self) -> str:
        return ", ".join(self.controller_listener_names)

    def _is_own_controller(self, host: str, port: int) -> bool:
        """Whether an address is certainly that of this node: if in doubt it is not, so that no second cluster forms.

        Hosts that only clients connect to do not count, because they may be shared by several nodes.
        """
        addresses = [*self.listeners, *(self.advertised_listeners or ())]
        own = [listener for listener in addresses if listener.name in self.controller_listener_names]
        hosts = {listener.host.lower() for listener in own}
        hosts |= {"localhost", "127.0.0.1", "::1", socket.gethostname().lower()}
        # In Kubernetes the full name of a pod begins with the name of its machine.
        is_own_host = not hosts.isdisjoint((host.lower(), host.lower().partition(".")[0]))
        return is_own_host and port in {listener.port for listener in own}

    def _timeout_problems(self) -> Iterator[Problem]:
        if self.broker_heartbeat_interval_ms >= self.broker_session_timeout_ms:
            reason = f"must be less than broker.session.timeout.ms={self.broker_session_timeout_ms}"
            yield self._problem("broker.heartbeat.interval.ms", reason)
        for key in ("replica.lag.time.max.ms", "replica.socket.timeout.ms"):
            limit = getattr(self, key.replace(".", "_"))
            if self.replica_fetch_wait_max_ms > limit:
                yield self._problem("replica.fetch.wait.max.ms", f"must be at most {key}={limit}")

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
