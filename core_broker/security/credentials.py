"""The SCRAM credentials of users, as they are in the metadata of the cluster."""

from collections.abc import Callable, Iterator, Mapping

from core_broker.protocol.fields import Message
from core_broker.protocol.stored.metadata import UserScramCredentialRecord
from core_broker.security.sasl.scram import BY_NAME, BY_NUMBER, ScramCredential

Carried = Callable[[], Mapping[tuple[object, ...], Message]]
"""The records of the newest image that have to do with security, by what they are about."""


class ScramCredentials:
    """Finds credentials in the newest metadata of this node: it keeps no copy, so nothing can be out of date."""

    def __init__(self, carried: Carried) -> None:
        self._carried = carried

    def find(self, name: str, mechanism: str) -> ScramCredential | None:
        """The credential of a user for a mechanism such as SCRAM-SHA-256."""
        scram = BY_NAME.get(mechanism)
        record = None if scram is None else self._carried().get(("scram", name, scram.number))
        if not isinstance(record, UserScramCredentialRecord):
            return None
        return ScramCredential(
            salt=record.salt,
            stored_key=record.stored_key,
            server_key=record.server_key,
            iterations=record.iterations,
        )

    def iterations_of(self, name: str) -> dict[int, int]:
        """The mechanisms, by their numbers, for which a user has a credential, each with its iterations."""
        found = ((number, self.find(name, scram.name)) for number, scram in BY_NUMBER.items())
        return {number: credential.iterations for number, credential in found if credential is not None}

    def names(self) -> Iterator[str]:
        """The users that have credentials, each once."""
        yield from dict.fromkeys(
            record.name for record in self._carried().values() if isinstance(record, UserScramCredentialRecord)
        )
