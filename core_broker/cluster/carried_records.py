"""Records that the state of the cluster keeps as they are: ACLs, quotas, credentials, tokens.

Those who use them follow the records. Snapshots have all of them, also those that no part of Caudal uses.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec.structs import replace

from core_broker.protocol.fields import Message
from core_broker.protocol.stored import metadata as stored

CarriedKey: TypeAlias = tuple[object, ...]
"""What a record is about: a later one with the same key replaces it."""


def carried(record: Message) -> tuple[CarriedKey, Message | None] | None:
    """The key of such a record, and what to keep for it: None if it removes what was kept. None for other kinds."""
    match record:
        case stored.AccessControlEntryRecord():
            return ("acl", record.id), record
        case stored.RemoveAccessControlEntryRecord():
            return ("acl", record.id), None
        case stored.UserScramCredentialRecord():
            return ("scram", record.name, record.mechanism), record
        case stored.RemoveUserScramCredentialRecord():
            return ("scram", record.name, record.mechanism), None
        case stored.DelegationTokenRecord():
            return ("token", record.token_id), record
        case stored.RemoveDelegationTokenRecord():
            return ("token", record.token_id), None
        case stored.ClientQuotaRecord():
            entity = frozenset((part.entity_type, part.entity_name) for part in record.entity)
            return ("quota", entity, record.key), None if record.remove else record
        case _:
            return None


def carried_removals(before: Mapping[CarriedKey, Message], after: Mapping[CarriedKey, Message]) -> Iterator[Message]:
    """Records that remove what is not kept any more, for those who follow the records one by one."""
    for key, record in before.items():
        if key in after:
            continue
        match record:
            case stored.AccessControlEntryRecord():
                yield stored.RemoveAccessControlEntryRecord(id=record.id)
            case stored.UserScramCredentialRecord():
                yield stored.RemoveUserScramCredentialRecord(name=record.name, mechanism=record.mechanism)
            case stored.DelegationTokenRecord():
                yield stored.RemoveDelegationTokenRecord(token_id=record.token_id)
            case stored.ClientQuotaRecord():
                yield replace(record, remove=True)
            case _:
                raise TypeError(f"{type(record).__name__} has no record that removes it")
