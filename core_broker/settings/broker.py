"""All settings of a broker in one class."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from typing_extensions import override

from core_broker.service.settings import Problem
from core_broker.settings.cluster import ClusterSettings
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
    """What an operator may change about a broker."""

    IGNORED: ClassVar[dict[str, str]] = {
        **{key: definition.without_effect for key, definition in WITHOUT_EFFECT.items()},
        "num.replica.alter.log.dirs.threads": "one thread copies the partitions that move, in turn",
        "group.coordinator.threads": THREADS,
        "group.coordinator.background.threads": THREADS,
        "group.coordinator.append.linger.ms": "a coordinator writes at once",
        "transaction.state.log.compression.codec": "the transaction log is not compressed",
        "log.dir.failure.timeout.ms": "a failed log folder stops the broker at once",
        "controlled.shutdown.max.retries": "a controlled stop is tried until it succeeds or is cut short",
        "controlled.shutdown.retry.backoff.ms": "a controlled stop is tried until it succeeds or is cut short",
        "metrics.num.samples": "metrics are served at metrics.listener",
        "metrics.recording.level": "metrics are served at metrics.listener",
        "metrics.sample.window.ms": "metrics are served at metrics.listener",
        "auto.include.jmx.reporter": "metrics are served at metrics.listener",
        "share.coordinator.*": "share groups are not offered",
        "group.share.*": "share groups are not offered",
        "group.streams.*": "streams groups are not offered",
        "remote.log.*": "tiered storage is not offered",
        "unstable.api.versions.enable": "unstable APIs are not offered",
        "unstable.feature.versions.enable": "unstable features are not offered",
        "confluent.support.*": "nothing is reported home",
        "confluent.metrics.*": "nothing is reported home",
        "confluent.balancer.*": "there is no balancer",
        "confluent.license*": "no license is needed",
    }
    REFUSED: ClassVar[dict[str, str]] = {
        "zookeeper.*": "there is no ZooKeeper; remove it",
        "remote.log.storage.system.enable": "tiered storage is not offered; remove it",
        "ssl.*": SECURITY,
        "sasl.*": SECURITY,
        "listener.name.*": SECURITY,
        "authorizer.class.name": SECURITY,
        "super.users": SECURITY,
        "allow.everyone.if.no.acl.found": SECURITY,
        "create.topic.policy.class.name": "policies are not offered; remove it",
        "alter.config.policy.class.name": "policies are not offered; remove it",
    }

    @property
    def broker_listeners(self) -> tuple[Listener, ...]:
        """The listeners that clients use: all but the controller's."""
        return tuple(item for item in self.listeners if item.name not in self.controller_listener_names)

    def security_protocol(self, listener_name: str) -> str | None:
        """The protocol that a listener speaks, None when the map does not tell."""
        return dict(self.listener_security_protocol_map).get(listener_name)

    @override
    def problems(self) -> Iterable[Problem]:
        """Rules between keys."""
        yield from self._listener_problems()
        yield from self._registry_problems()
        yield from self._range_problems("group.{}.session.timeout.ms")
        yield from self._range_problems("group.consumer.{}.session.timeout.ms")
        yield from self._range_problems("group.consumer.{}.heartbeat.interval.ms")

    def _listener_problems(self) -> Iterator[Problem]:
        if "broker" in self.process_roles and not self.broker_listeners:
            yield self._problem("listeners", "must hold a listener that is not one of controller.listener.names")
        for listener in self.listeners:
            yield from self._protocol_problems(listener)
        names = {listener.name for listener in self.broker_listeners}
        for advertised in self.advertised_listeners or ():
            if advertised.name not in names and advertised.name not in self.controller_listener_names:
                yield self._problem("advertised.listeners", f"{advertised.name} must also be one of listeners")
            if advertised.host in ("", "0.0.0.0", "::"):
                yield self._problem("advertised.listeners", "must name a host that clients can connect to")
        if self.inter_broker_listener_name and self.inter_broker_listener_name not in names:
            yield self._problem("inter.broker.listener.name", f"must be one of {', '.join(sorted(names))}")

    def _protocol_problems(self, listener: Listener) -> Iterator[Problem]:
        protocol = self.security_protocol(listener.name)
        if protocol is None:
            reason = f"listener.security.protocol.map must say which protocol {listener.name} speaks"
            yield self._problem("listeners", reason)
        elif protocol not in PROTOCOLS:
            yield self._problem("listener.security.protocol.map", f"protocols are {', '.join(PROTOCOLS)}")
        elif protocol != "PLAINTEXT":
            yield self._problem("listeners", f"{listener.name} would speak {protocol}, but {SECURITY}")

    def _registry_problems(self) -> Iterator[Problem]:
        if self.confluent_basic_auth_credentials_source == "USER_INFO" and not self.confluent_basic_auth_user_info:
            reason = "confluent.basic.auth.user.info must hold user:password"
            yield self._problem("confluent.basic.auth.credentials.source", reason)

    def _range_problems(self, pattern: str) -> Iterator[Problem]:
        low, high = pattern.format("min"), pattern.format("max")
        minimum, maximum = (getattr(self, key.replace(".", "_")) for key in (low, high))
        if minimum > maximum:
            yield self._problem(low, f"must be at most {high}={maximum}")

    def _problem(self, key: str, reason: str) -> Problem:
        return Problem(key=key, value=self.text_of(key) or "", reason=reason)
