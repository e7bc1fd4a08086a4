"""Records that no part of Caudal uses, but controllers of Apache Kafka do: access rules, quotas, credentials, tokens.

They are kept in the state of the cluster all the same. Otherwise they would be missing in the snapshot of a Caudal
controller, and lost for good once the log before it is deleted.
"""

from typing import TypeAlias

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
