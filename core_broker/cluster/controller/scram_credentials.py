"""Plans AlterUserScramCredentials (KIP-554): each user is changed completely or gets an error; the others go on."""

from typing import Final

from core_broker.cluster.features import SCRAM_SINCE, metadata_version
from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from core_broker.protocol.stored.metadata import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from core_broker.security.sasl.scram import BY_NUMBER, ITERATIONS_MAX, ITERATIONS_MIN, from_salted_password

CHANGES_MAX: Final = 10_000
"""Changes in one request, as in Kafka: they become one batch of records."""
_BYTES_MAX: Final = 1024
"""Of a name, a salt or a salted password; Kafka has no limit."""


def plan_scram_changes(
    request: AlterUserScramCredentialsRequest, image: MetadataImage
) -> tuple[list[Message], AlterUserScramCredentialsResponse]:
    """The records of all valid users, deletions first, and a result for each user by name. Raises BrokerError."""
    if len(request.deletions) + len(request.upsertions) > CHANGES_MAX:
        text = f"the request has more than {CHANGES_MAX} changes; send several requests"
        raise BrokerError(ErrorCode.POLICY_VIOLATION, text)
    records: dict[str, Message] = {}
    errors: dict[str, BrokerError] = {}
    changes: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [*request.deletions, *request.upsertions]
    for change in changes:
        name = change.name
        if name in errors:
            continue
        try:
            if records.pop(name, None) is not None:
                text = "a user may be changed only once in a request"
                raise BrokerError(ErrorCode.DUPLICATE_RESOURCE, text)
            records[name] = _plan(change, image)
        except BrokerError as error:
            errors[name] = error
    results = [_result(name, errors.get(name)) for name in sorted({*records, *errors})]
    return list(records.values()), AlterUserScramCredentialsResponse(results=results)


def _result(name: str, error: BrokerError | None) -> AlterUserScramCredentialsResult:
    code, message = (ErrorCode.NONE, None) if error is None else (error.code, error.message)
    return AlterUserScramCredentialsResult(name, code, message)


def _plan(change: ScramCredentialDeletion | ScramCredentialUpsertion, image: MetadataImage) -> Message:
    level = metadata_version(image.features)
    if level < SCRAM_SINCE:
        text = f"SCRAM credentials need metadata.version={SCRAM_SINCE}; it is {level}"
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, text)
    if not change.name:
        raise _unacceptable("the name of a user must not be empty")
    if len(change.name.encode()) > _BYTES_MAX:
        raise _unacceptable(f"the name of a user may have up to {_BYTES_MAX} bytes")
    if change.mechanism not in BY_NUMBER:
        text = f"{change.mechanism} is not the number of a SCRAM mechanism; use 1 (SHA-256) or 2 (SHA-512)"
        raise BrokerError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, text)
    match change:
        case ScramCredentialDeletion():
            return _deletion(change, image)
        case ScramCredentialUpsertion():
            return _upsertion(change)


def _deletion(change: ScramCredentialDeletion, image: MetadataImage) -> Message:
    if ("scram", change.name, change.mechanism) not in image.carried:
        text = f"the user has no credential for {BY_NUMBER[change.mechanism].name}"
        raise BrokerError(ErrorCode.RESOURCE_NOT_FOUND, text)
    return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)


def _upsertion(change: ScramCredentialUpsertion) -> Message:
    """The record, whose keys are derived here: what is stored does not allow a login elsewhere."""
    if not ITERATIONS_MIN <= change.iterations <= ITERATIONS_MAX:
        raise _unacceptable(f"iterations must be {ITERATIONS_MIN} to {ITERATIONS_MAX}, not {change.iterations}")
    if not (0 < len(change.salt) <= _BYTES_MAX and 0 < len(change.salted_password) <= _BYTES_MAX):
        raise _unacceptable(f"the salt and the salted password must have 1 to {_BYTES_MAX} bytes")
    mechanism = BY_NUMBER[change.mechanism].name
    credential = from_salted_password(change.salted_password, mechanism, change.iterations, change.salt)
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def _unacceptable(message: str) -> BrokerError:
    return BrokerError(ErrorCode.UNACCEPTABLE_CREDENTIAL, message)
