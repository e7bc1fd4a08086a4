"""What authorization costs: a decision, and a small produce request, with few and with many ACLs."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from core_broker.protocol.principals import Principal
from core_broker.protocol.stored.metadata import AccessControlEntryRecord
from core_broker.security.authorizer import Authorizer
from core_broker.security.operations import Operation
from core_broker.security.operations import ResourceType as Kind
from core_broker.settings.authorization import STANDARD_AUTHORIZER
from tests.benchmarks.measure import AS_DELIVERED, Row, Sizes
from tests.benchmarks.requests import small_requests
from tests.support.broker import BrokerProcess

_ACL_COUNTS: Final = (10, 10_000)
_ACLS_PER_REQUEST: Final = 1000
_NAMES: Final = 1000
_AUTHORIZED: Final = {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
"""Without an ACL on the cluster, a client without a name may create the others."""


def authorization(directory: Path, sizes: Sizes) -> Iterator[Row]:
    """Decisions in this process, and requests to brokers without and with ACLs."""
    for count in _ACL_COUNTS:
        yield from _decisions(count, sizes.small_requests)
    for count in (0, *_ACL_COUNTS):
        settings = {**AS_DELIVERED, **(_AUTHORIZED if count else {})}
        with BrokerProcess(directory / f"acls-{count}", settings=settings) as broker:
            if count:
                _create_acls(broker, count)
            row = small_requests(broker, sizes)[0]
            what = f"small produce, {count:,} ACLs" if count else "small produce, no authorizer"
            yield Row(what=what, result=row.result, how=row.how)


def _decisions(acls: int, count: int) -> Iterator[Row]:
    """Half of the ACLs are for literal names, half for prefixes of many lengths, each for a user of its own."""
    authorizer = Authorizer()
    authorizer.load(
        AccessControlEntryRecord(
            id=number.to_bytes(16),
            resource_type=Kind.TOPIC,
            resource_name=f"topic-{number}" if number % 2 else f"prefix-{'x' * (number % 40)}-{number}",
            pattern_type=3 if number % 2 else 4,
            principal=f"User:user-{number}",
            host="*",
            operation=Operation.WRITE,
            permission_type=3,
        )
        for number in range(acls)
    )
    user = Principal("User", "user-1")
    names = [f"topic-{number}" for number in range(_NAMES)]
    for what, rounds in (("first", 1), ("repeated", max(1, count // _NAMES))):
        started = time.perf_counter()
        for _ in range(rounds):
            for name in names:
                authorizer.allows(user, "10.0.0.1", Operation.WRITE, Kind.TOPIC, name)
        cost = (time.perf_counter() - started) / (rounds * _NAMES) * 1e6
        how = f"in this process, {_NAMES:,} names, {rounds:,} rounds; half of the ACLs are prefixes of 40 lengths"
        yield Row(what=f"{what} decision, {acls:,} ACLs", result=f"{cost:.2f} µs", how=how)


def _create_acls(broker: BrokerProcess, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    bindings = [_acl("bench-", "User:ANONYMOUS", is_prefix=True)]
    bindings += [
        _acl(f"topic-{number}", f"User:user-{number}", is_prefix=number % 2 == 0) for number in range(count - 1)
    ]
    for start in range(0, count, _ACLS_PER_REQUEST):
        futures = admin.create_acls(bindings[start : start + _ACLS_PER_REQUEST], request_timeout=60)
        for future in futures.values():
            future.result(60)


def _acl(name: str, principal: str, *, is_prefix: bool) -> AclBinding:
    pattern = ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL
    return AclBinding(ResourceType.TOPIC, name, pattern, principal, "*", AclOperation.ALL, AclPermissionType.ALLOW)
