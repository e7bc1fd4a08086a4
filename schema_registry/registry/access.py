"""What a caller may do: by the access rules in the database, and by those in Karapace's file if there is one.

The routes check what the path names (`schema_registry/routes/access_table.py`). The registry checks what it comes upon
later: the targets of aliases and references, and subjects that it finds by an id or in another context.
"""

from collections.abc import Callable, Iterable
from typing import Final

from core_broker.security.acls import PermissionType
from core_broker.web_access.callers import Caller
from core_broker.web_access.errors import Forbidden
from core_broker.web_access.rules import WHOLE, Operation, ResourceType, Rules
from schema_registry.errors import RegistryError, forbidden
from schema_registry.registry.scopes import GLOBAL_SCOPE, TOP
from schema_registry.registry.subject_names import SubjectName

FilePermissions = Callable[[str, Operation, ResourceType, str], bool]
"""Whether a file of permissions lets a user do something to a resource of a type."""

_SUBJECTS_NAMED_MAX: Final = 32


class AccessRules:
    """Decides for all callers. May be used on any thread."""

    def __init__(self, rules: Rules, *, is_permitted_by_file: FilePermissions = lambda *_: False) -> None:
        self._rules = rules
        self._is_permitted_by_file = is_permitted_by_file

    @property
    def is_enforced(self) -> bool:
        """Whether anything can be refused."""
        return self._rules.is_enforced

    def allows(self, caller: Caller, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether a caller may do something. A rule that denies it wins over the file."""
        decision = self._rules.decide(caller, operation, resource_type, name)
        if decision.is_allowed:
            return True
        if decision.rule is not None and decision.rule.permission == PermissionType.DENY:
            return False
        principal = caller.principal
        return principal.kind == "User" and self._is_permitted_by_file(principal.name, operation, resource_type, name)

    def allows_reading(self, caller: Caller, subjects: Iterable[str]) -> bool:
        """Whether a caller may read one of the subjects."""
        return any(self.allows(caller, Operation.READ, ResourceType.SUBJECT, subject) for subject in subjects)

    def require(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, name: str, *, api: str
    ) -> None:
        """Raise 40301 unless the caller may do it; that is written to the audit log."""
        if self.allows(caller, operation, resource_type, name):
            return
        try:
            self._rules.require(caller, operation, resource_type, name, api=api)
        except Forbidden as error:
            raise forbidden(error.message) from None


class Access:
    """What the caller of one request may do."""

    def __init__(
        self, rules: AccessRules | None, caller: Caller, *, api: str = "", shown_through: list[str] | None = None
    ) -> None:
        """Without rules, everything. `shown_through` is filled with subjects of which each lets a caller see the
        schema in the response.
        """
        self._rules = rules
        self._caller = caller
        self._api = api
        self._shown_through = [] if shown_through is None else shown_through

    @property
    def is_limited(self) -> bool:
        """Whether anything can be refused."""
        return self._rules is not None

    def allows(self, operation: Operation, subject: SubjectName) -> bool:
        """Whether the caller may do something to a subject; nothing is logged."""
        return self._rules is None or self._rules.allows(self._caller, operation, *resource_of(subject))

    def allows_whole(self, operation: Operation) -> bool:
        """Whether the caller may do something to the registry as a whole; nothing is logged."""
        return self._rules is None or self._rules.allows(self._caller, operation, *_REGISTRY)

    def require(self, operation: Operation, subject: SubjectName) -> None:
        """Raise 40301 unless the caller may do something to a subject or context."""
        self._require(operation, *resource_of(subject))

    def require_meant(self, operation: Operation, asked: SubjectName, meant: SubjectName) -> None:
        """As `require`, for a subject and the one that it is an alias of, which the message does not name."""
        self.require(operation, asked)
        try:
            self.require(operation, meant)
        except RegistryError:
            resource_type, name = resource_of(asked)
            raise forbidden(f"{self._caller.principal} may not {operation} {resource_type} {name}") from None

    def require_whole(self, operation: Operation) -> None:
        """Raise 40301 unless the caller may do something to the registry as a whole."""
        self._require(operation, *_REGISTRY)

    def require_one(self, subjects: Iterable[SubjectName], not_found: Callable[[], RegistryError]) -> None:
        """Raise an error, the same as if nothing existed, unless the caller may read one of the subjects."""
        if self._rules is None:
            return
        readable = [subject.qualified for subject in subjects if self.allows(Operation.READ, subject)]
        if not readable:
            raise not_found()
        self._shown_through[:] = readable[:_SUBJECTS_NAMED_MAX]

    def forget_shown(self) -> None:
        """What the response shows depends on more than one subject."""
        self._shown_through.clear()

    def _require(self, operation: Operation, resource_type: ResourceType, name: str) -> None:
        if self._rules is not None:
            self._rules.require(self._caller, operation, resource_type, name, api=self._api)


EVERYTHING: Final = Access(None, Caller())
"""The access of a caller to whom no rules apply."""

_REGISTRY: Final = (ResourceType.REGISTRY, WHOLE[ResourceType.REGISTRY])


def resource_of(scope: SubjectName) -> tuple[ResourceType, str]:
    """The resource of a subject, a context or the whole: what is set at the top holds for all subjects."""
    if scope.key in (TOP.key, GLOBAL_SCOPE):
        return _REGISTRY
    return ResourceType.SUBJECT, scope.qualified
