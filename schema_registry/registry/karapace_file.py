"""Users and permissions in Karapace's file (`registry_authfile`), read as Karapace reads it.

```json
{
    "users": [{"username": "alice", "algorithm": "scrypt", "salt": "...", "password_hash": "..."}],
    "permissions": [{"username": "alice", "operation": "Write", "resource": "Subject:orders.*"}]
}
```

A permission is a regular expression for the beginning of `Subject:<name>` or `Config:`. Write includes Read. What
Karapace cannot do (modes, keys, contexts, access rules) needs an access rule of the registry.
"""

import asyncio
import base64
import hashlib
import hmac
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol, Self

import msgspec
import re2
from typing_extensions import override

from core_broker.web_access.errors import Unavailable
from core_broker.web_access.passwords import PasswordVerifier, Verdict
from core_broker.web_access.rules import Operation, ResourceType

log = logging.getLogger(__name__)

_FILE_BYTES_MAX: Final = 16 * 1024 * 1024
_EXPRESSION_CHARACTERS_MAX: Final = 1024
_EXPRESSION_MEMORY_MAX_BYTES: Final = 1024 * 1024
_ITERATIONS: Final = 5000
_SCRYPT_COST: Final = 16384
_THREADS: Final = 2
"""A password costs a thread some 50 ms, and scrypt 16 MB."""
_WAITING_MAX: Final = 64
_DECISIONS_MAX: Final = 8192

_READING: Final = {Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS}
_WRITING: Final = {*_READING, Operation.WRITE, Operation.DELETE, Operation.ALTER_CONFIGS}
_READING_CONFIG: Final = {Operation.DESCRIBE_CONFIGS}
_WRITING_CONFIG: Final = {Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}


class _Pattern(Protocol):
    def match(self, text: str) -> object | None: ...


class _Algorithm(StrEnum):
    SHA1 = "sha1"
    SHA256 = "sha256"
    SHA512 = "sha512"
    SCRYPT = "scrypt"


class _Right(StrEnum):
    READ = "Read"
    WRITE = "Write"


class _User(msgspec.Struct, frozen=True):
    username: str
    algorithm: _Algorithm
    salt: str
    password_hash: str

    @override
    def __repr__(self) -> str:
        return f"_User({self.username!r})"

    def has_password(self, password: str) -> bool:
        """Hash a password and compare; takes a while."""
        plain, salt = password.encode(), self.salt.encode()
        if self.algorithm is _Algorithm.SCRYPT:
            found = hashlib.scrypt(plain, salt=salt, n=_SCRYPT_COST, r=8, p=1)
        else:
            found = hashlib.pbkdf2_hmac(self.algorithm.value, plain, salt, _ITERATIONS)
        return hmac.compare_digest(base64.b64encode(found), self.password_hash.encode())


class _Permission(msgspec.Struct, frozen=True):
    username: str
    operation: _Right
    resource: str


class _Document(msgspec.Struct, frozen=True):
    users: list[_User]
    permissions: list[_Permission]


class _Content(msgspec.Struct, frozen=True):
    """What a file says, ready to be asked."""

    users: Mapping[str, _User]
    permissions: Mapping[str, list[tuple[_Right, _Pattern]]]
    decisions: dict[tuple[str, Operation, str], bool] = msgspec.field(default_factory=dict)
    """What was asked before: the event loop asks for every cached response."""


class KarapaceFile(PasswordVerifier):
    """The users and permissions of a file, which is read again when it changes."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError if the file cannot be read or is not valid."""
        self._path = path
        self._signature = _signature_of(path)
        self._content = _read(path)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="password-hash")
        self._waiting = 0

    @asynccontextmanager
    async def following(self, *, seconds: float = 1.0) -> AsyncIterator[Self]:
        """Look for changes of the file while the block runs."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._follow(seconds))
            try:
                yield self
            finally:
                task.cancel()
                self._threads.shutdown(wait=False, cancel_futures=True)

    @override
    async def verify(self, user: str, password: str) -> Verdict:
        """Whether the password is that of the file, if the file has the user. Raises Unavailable."""
        known = self._content.users.get(user)
        if known is None:
            return Verdict.UNKNOWN_USER
        if self._waiting >= _WAITING_MAX:
            raise Unavailable("Too many passwords are being checked; try again soon")
        self._waiting += 1
        try:
            is_right = await asyncio.get_running_loop().run_in_executor(self._threads, known.has_password, password)
        finally:
            self._waiting -= 1
        return Verdict.RIGHT if is_right else Verdict.WRONG

    def permits(self, user: str, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether the file lets a user do something to a subject, or to the registry as a whole."""
        is_subject = resource_type is ResourceType.SUBJECT
        text = f"Subject:{name}" if is_subject else "Config:"
        content = self._content  # another file may take its place at any moment
        question = (user, operation, text)
        decision = content.decisions.get(question)
        if decision is None:
            reading, writing = (_READING, _WRITING) if is_subject else (_READING_CONFIG, _WRITING_CONFIG)
            decision = any(
                operation in (writing if right is _Right.WRITE else reading) and pattern.match(text) is not None
                for right, pattern in content.permissions.get(user, ())
            )
            if len(content.decisions) >= _DECISIONS_MAX:
                content.decisions.clear()
            content.decisions[question] = decision
        return decision

    async def _follow(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            await asyncio.to_thread(self._read_if_changed)

    def _read_if_changed(self) -> None:
        signature = _signature_of(self._path)
        if signature == self._signature:
            return
        self._signature = signature  # a file that is not valid is tried again when it changes
        try:
            self._content = _read(self._path)
        except ValueError as error:
            log.error("registry.authfile is not valid; the former users stay", extra={"reason": str(error)})
        else:
            log.info("registry.authfile read again", extra={"users": len(self._content.users)})


def _read(path: Path) -> _Content:
    try:
        with path.open("rb") as file:
            text = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ValueError(f"registry.authfile={path} cannot be read: {error.strerror}") from None
    if len(text) > _FILE_BYTES_MAX:
        raise ValueError(f"registry.authfile={path} has more than {_FILE_BYTES_MAX} bytes")
    try:
        document = msgspec.json.decode(text, type=_Document)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"registry.authfile={path} is not valid: {error}") from None
    return _Content(
        users={user.username: user for user in document.users}, permissions=_by_user(document.permissions, path)
    )


def _by_user(permissions: Iterable[_Permission], path: Path) -> dict[str, list[tuple[_Right, _Pattern]]]:
    found: dict[str, list[tuple[_Right, _Pattern]]] = {}
    for number, permission in enumerate(permissions):
        try:
            pattern = _compile(permission.resource)
        except ValueError as error:
            place = f"permissions[{number}].resource"
            raise ValueError(f"registry.authfile={path}: {place} is not a regular expression of RE2: {error}") from None
        found.setdefault(permission.username, []).append((permission.operation, pattern))
    return found


def _compile(expression: str) -> _Pattern:
    if len(expression) > _EXPRESSION_CHARACTERS_MAX:
        raise ValueError(f"it has more than {_EXPRESSION_CHARACTERS_MAX} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _EXPRESSION_MEMORY_MAX_BYTES
    try:
        pattern: _Pattern = re2.compile(expression, options)
    except re2.error as error:
        detail = error.args[0] if error.args else error
        raise ValueError(detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)) from None
    return pattern


def _signature_of(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
