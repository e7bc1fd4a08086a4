"""A registry that asks for users, and what they ask it."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx2
from fastapi import FastAPI

from core_broker.security.authorizer import Denial
from core_broker.web_access.rules import Rule, Rules
from schema_registry.registry.access import AccessRules, FilePermissions
from schema_registry.routes.guard import Guard
from schema_registry.settings import RegistrySettings
from tests.support.registry import RegistryProcess

ADMIN: Final = ("admin", "admin-secret")
ALICE: Final = ("alice", "alice-secret")
BOB: Final = ("bob", "bob-secret")


def open_to_all(app: FastAPI) -> None:
    """Let everybody do everything in an app with the registry's routes."""
    Guard(AccessRules(Rules(RegistrySettings()))).install(app)


_BASIC: Final = {
    "authentication.method": "BASIC",
    "authentication.kafka.bootstrap.servers": "127.0.0.1:1",
    "authentication.kafka.security.protocol": "SASL_PLAINTEXT",
    "authentication.kafka.sasl.mechanism": "PLAIN",
}


def enforced_rules(*rules: Rule, on_denial: Callable[[Denial], None] | None = None) -> Rules:
    """Rules that are enforced."""
    made = Rules(RegistrySettings.parse(_BASIC), on_denial=on_denial)
    made.replace(rules)
    return made


def access_rules(
    *rules: Rule,
    is_permitted_by_file: FilePermissions = lambda *_: False,
    on_denial: Callable[[Denial], None] | None = None,
) -> AccessRules:
    """The registry's decisions by these rules."""
    return AccessRules(enforced_rules(*rules, on_denial=on_denial), is_permitted_by_file=is_permitted_by_file)


def user(name: str, password: str, *, algorithm: str = "sha1", salt: str = "salt") -> dict[str, str]:
    """A user as `karapace_mkpasswd` writes it."""
    if algorithm == "scrypt":
        digest = hashlib.scrypt(password.encode(), salt=salt.encode(), n=16384, r=8, p=1)
    else:
        digest = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt.encode(), 5000)
    return {
        "username": name,
        "algorithm": algorithm,
        "salt": salt,
        "password_hash": base64.b64encode(digest).decode(),
    }


def users_file(
    path: Path,
    users: Iterable[tuple[str, str]] = (ADMIN, ALICE, BOB),
    permissions: Iterable[tuple[str, str, str]] = (),
) -> Path:
    """A file of users and of their permissions (user, operation, resource), replaced as a whole."""
    document = {
        "users": [user(*one) for one in users],
        "permissions": [
            {"username": name, "operation": operation, "resource": resource}
            for name, operation, resource in permissions
        ],
    }
    new = path.with_suffix(".new")
    new.write_text(json.dumps(document))
    new.replace(path)
    return path


class GuardedRegistry(RegistryProcess):
    """A registry whose users are those of a file; `admin` may do everything."""

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.file = users_file(directory / "users.json")
        access = {
            "authentication.method": "BASIC",
            "registry.authfile": str(self.file),
            "super.users": "User:admin",
            "dek.local.kms.secret": "kms-secret",
            "authentication.failures.per.minute": "1000000",
        }
        super().__init__(directory, settings={**access, **(settings or {})})


class User:
    """A client that logs in with a name and a password, or not at all."""

    def __init__(self, url: str, login: tuple[str, str] | None) -> None:
        self._url = url
        self._http = httpx2.Client(timeout=30, auth=login)

    def ask(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        """Any request."""
        content = None if body is None else json.dumps(body).encode()
        return self._http.request(method, self._url + path, content=content)

    def get(self, path: str) -> Any:
        """The answer to a GET that succeeds."""
        answer = self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def do(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to any request that succeeds."""
        answer = self.ask(method, path, body)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        return answer.json() if answer.content else None

    def code(self, method: str, path: str, body: Any = None) -> int:
        """The error code of a refusal."""
        answer = self.ask(method, path, body)
        assert not answer.is_success, f"{method} {path}: {answer.text}"
        return int(answer.json()["error_code"])

    def register(self, subject: str, schema: str, **body: Any) -> Any:
        """Register a schema."""
        return self.do("POST", f"/subjects/{subject}/versions", {"schema": schema, **body})

    def close(self) -> None:
        """Close all connections."""
        self._http.close()


def rule(operation: str, resource: str = "", *, who: str = "User:alice", **fields: str) -> dict[str, str]:
    """A rule that allows something on a subject, or without a resource on the registry."""
    kind = {"resource_type": "SUBJECT" if resource else "REGISTRY", "resource": resource}
    return {"principal": who, "operation": operation, "permission": "ALLOW", **kind, **fields}


class Administrator(User):
    """The administrator, who makes the rules."""

    def allow(self, *rules: Mapping[str, str]) -> None:
        """From now on these are the rules."""
        self.do("DELETE", "/security/acls", [{}])
        if rules:
            self.do("POST", "/security/acls", list(rules))
