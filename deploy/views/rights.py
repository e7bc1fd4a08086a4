"""Which right a command lacked when the cluster refused it, and the command that grants it."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from typing_extensions import override

from core_broker.errors import ErrorCode

_TOPIC, _GROUP, _CLUSTER, _TRANSACTION = "topic", "group", "cluster", "transactional-id"
_KINDS: Final[Mapping[int, str]] = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _TOPIC,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: _GROUP,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _CLUSTER,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _TRANSACTION,
}
_NEEDED: Final[Mapping[tuple[str, str], str]] = {
    ("topic create", _TOPIC): "create",
    ("topic create", _CLUSTER): "create",
    ("topic describe", _TOPIC): "describe,describe-configs",
    ("topic alter", _TOPIC): "alter,alter-configs",
    ("topic delete", _TOPIC): "delete",
    ("topic produce", _TOPIC): "write",
    ("topic produce", _CLUSTER): "idempotent-write",
    ("topic produce", _TRANSACTION): "write",
    ("topic consume", _TOPIC): "read",
    ("topic consume", _GROUP): "read",
    ("group describe", _GROUP): "describe",
    ("group seek", _GROUP): "read",
    ("group seek", _TOPIC): "read",
    ("group delete", _GROUP): "delete",
    ("cluster", _CLUSTER): "describe",
    ("cluster describe", _CLUSTER): "describe",
    ("acl list", _CLUSTER): "describe",
    ("acl check", _CLUSTER): "describe",
    ("user list", _CLUSTER): "describe",
    ("quota list", _CLUSTER): "describe-configs",
    ("quota set", _CLUSTER): "alter-configs",
    ("quota remove", _CLUSTER): "alter-configs",
}
"""Operations by command and kind of resource; what else a command does to the cluster needs `alter`."""
_PARAMETERS: Final = {_TOPIC: ("name", "names", "topic", "topics"), _GROUP: ("group_id", "group_ids", "group")}
"""The parameters of commands that name topics and groups."""


class Right(msgspec.Struct, frozen=True, kw_only=True):
    """Operations on resources of one kind."""

    operations: str
    kind: str
    names: tuple[str, ...] = ()

    @override
    def __str__(self) -> str:
        what = "the cluster" if self.kind == _CLUSTER else " ".join([self.kind, *self.names])
        return f"{self.operations.replace(',', ' or ')} {what}"

    def how_to_grant(self, principal: str | None) -> str:
        """A next step with the command that an administrator enters."""
        words = ["caudal", "acl", "allow", principal or "User:NAME", self.operations]
        for name in self.names or (() if self.kind == _CLUSTER else ("NAME",)):
            words += [f"--{self.kind}", name]
        command = shlex.join([*words, "--cluster"] if self.kind == _CLUSTER else words)
        return f"an administrator allows it with:  `{command}`"


def missing_right(command: str, code: int, given: Mapping[str, Any]) -> Right | None:
    """The right that a command lacked, by the error code and the command's parameters; None if that cannot be known."""
    kind = _KINDS.get(code)
    operations = _NEEDED.get((command, kind or ""), "alter" if kind == _CLUSTER else None)
    if kind is None or operations is None:
        return None
    return Right(operations=operations, kind=kind, names=tuple(_names(kind, given)))


def _names(kind: str, given: Mapping[str, Any]) -> Iterable[str]:
    found = (given.get(parameter) for parameter in _PARAMETERS.get(kind, ()))
    value = next((item for item in found if item), ())
    return [value] if isinstance(value, str) else value
