"""Plans changes of client quotas, and describes those that there are (KIP-546)."""

import ipaddress
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final

import msgspec

from core_broker.cluster.carried_records import CarriedKey
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import alter_client_quotas as alter_wire
from core_broker.protocol.messages import describe_client_quotas as describe_wire
from core_broker.protocol.stored import metadata as stored
from core_broker.security.quota_limits import CLIENT_ID, IP, USER, QuotaKey
from core_broker.service.settings import INT_MAX, LONG_MAX

Entity = frozenset[tuple[str, str | None]]
"""Type and name of each part; without a name, the default."""

_EXACT, _DEFAULT, _SPECIFIED = range(3)
_TYPES: Final = (USER, CLIENT_ID, IP)
_COMBINATIONS: Final = ({USER}, {CLIENT_ID}, {USER, CLIENT_ID}, {IP})
_CLIENT_KEYS: Final[Mapping[str, int | None]] = {
    QuotaKey.PRODUCER_BYTE_RATE: LONG_MAX,
    QuotaKey.CONSUMER_BYTE_RATE: LONG_MAX,
    QuotaKey.REQUEST_PERCENTAGE: None,
    QuotaKey.CONTROLLER_MUTATION_RATE: None,
}
"""The keys of users and client ids, and the largest value of those that are whole numbers."""
_ADDRESS_KEYS: Final[Mapping[str, int | None]] = {QuotaKey.CONNECTION_CREATION_RATE: INT_MAX}
_WHOLE_WITHIN: Final = 1e-6


class QuotaPlan(msgspec.Struct, frozen=True):
    """The records of the valid changes, and a result for each entity of the request."""

    records: list[stored.ClientQuotaRecord]
    results: list[alter_wire.EntryResult]


def plan_quota_changes(entries: Sequence[alter_wire.EntryData], carried: Mapping[CarriedKey, Message]) -> QuotaPlan:
    """Plan the changes of a request; an invalid entity does not stop the others."""
    results: dict[object, alter_wire.EntryResult] = {}
    records: list[stored.ClientQuotaRecord] = []
    for entry in entries:
        entity = frozenset((part.entity_type, part.entity_name) for part in entry.entity)
        result = alter_wire.EntryResult(error_message=None, entity=entry.entity)
        try:
            if entity in results:
                raise _invalid("the entity is in the request more than once")
            records.extend(_plan_entity(entry, entity, carried))
        except BrokerError as error:
            result.error_code, result.error_message = error.code, error.message
        results[entity] = result
    return QuotaPlan(records, list(results.values()))


def _plan_entity(
    entry: alter_wire.EntryData, entity: Entity, carried: Mapping[CarriedKey, Message]
) -> list[stored.ClientQuotaRecord]:
    """The records that change one entity. Raises BrokerError."""
    _check_entity(entry.entity)
    keys = _ADDRESS_KEYS if entry.entity[0].entity_type == IP else _CLIENT_KEYS
    if len({operation.key for operation in entry.ops}) < len(entry.ops):
        raise _invalid("a key is in the same entry more than once")
    records: list[stored.ClientQuotaRecord] = []
    for operation in entry.ops:
        old = carried.get(("quota", entity, operation.key))
        if not operation.remove:
            _check_value(operation.key, operation.value, keys)
        is_unchanged = isinstance(old, stored.ClientQuotaRecord) and old.value == operation.value
        if (operation.remove and old is not None) or not (operation.remove or is_unchanged):
            records.append(
                stored.ClientQuotaRecord(
                    entity=[stored.EntityData(part.entity_type, part.entity_name) for part in entry.entity],
                    key=operation.key,
                    value=operation.value,
                    remove=operation.remove,
                )
            )
    return records


def _check_entity(parts: Sequence[alter_wire.EntityData]) -> None:
    types = [part.entity_type for part in parts]
    if len(set(types)) < len(types) or set(types) not in _COMBINATIONS:
        raise _invalid(f"{', '.join(types) or 'nothing'} is not an entity; use user, client-id, both of them, or ip")
    for part in parts:
        if part.entity_name == "":
            raise _invalid(f"the name of a {part.entity_type} must not be empty; leave it out (null) for the default")
        if part.entity_type == IP and part.entity_name is not None and not _is_address(part.entity_name):
            raise _invalid(f"{part.entity_name} is not an IP address")


def _check_value(key: str, value: float, keys: Mapping[str, int | None]) -> None:
    if key not in keys:
        raise _invalid(f"{key}: unknown quota; use {', '.join(keys)}")
    if not value > 0 or not isfinite(value):
        raise _invalid(f"{key}={value}: a quota must be larger than 0; remove it to have no limit")
    largest = keys[key]
    if largest is not None and (abs(value - round(value)) > _WHOLE_WITHIN or value > largest):
        raise _invalid(f"{key}={value}: must be a whole number up to {largest}")


def describe_quotas(
    request: describe_wire.DescribeClientQuotasRequest, carried: Mapping[CarriedKey, Message]
) -> list[describe_wire.EntryData]:
    """The quotas that pass a filter, with all keys of an entity together. Raises BrokerError."""
    wanted = _check_filter(request.components)
    if request.strict and not wanted:
        return []
    found: dict[Entity, describe_wire.EntryData] = {}
    for record in carried.values():
        if not isinstance(record, stored.ClientQuotaRecord):
            continue
        names = {part.entity_type: part.entity_name for part in record.entity}
        if not _passes(names, wanted, is_strict=request.strict):
            continue
        entry = found.setdefault(
            frozenset(names.items()),
            describe_wire.EntryData(
                entity=[describe_wire.EntityData(part.entity_type, part.entity_name) for part in record.entity]
            ),
        )
        entry.values.append(describe_wire.ValueData(record.key, record.value))
    return list(found.values())


def _check_filter(
    components: Sequence[describe_wire.ComponentData],
) -> dict[str, describe_wire.ComponentData]:
    wanted: dict[str, describe_wire.ComponentData] = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise _invalid("the filter has an empty entity type")
        if kind not in _TYPES:
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, f"{kind} is not an entity type; use {', '.join(_TYPES)}")
        if kind in wanted:
            raise _invalid(f"the filter has the entity type {kind} more than once")
        if component.match_type not in (_EXACT, _DEFAULT, _SPECIFIED):
            text = f"match type {component.match_type} is unknown; use 0 to 2 (exact, default, any that is specified)"
            raise _invalid(text)
        if (component.match_type == _EXACT) != (component.match is not None):
            raise _invalid("a name belongs to exact matches (type 0), and only to those")
        wanted[kind] = component
    if IP in wanted and len(wanted) > 1:
        raise _invalid("ip cannot be combined with user and client-id")
    return wanted


def _passes(
    names: Mapping[str, str | None], wanted: Mapping[str, describe_wire.ComponentData], *, is_strict: bool
) -> bool:
    if is_strict and names.keys() != wanted.keys():
        return False
    return all(
        kind in names and (component.match_type == _SPECIFIED or names[kind] == component.match)
        for kind, component in wanted.items()
    )


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, message)
