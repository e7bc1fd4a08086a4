"""Karapace's file: who its users are and what they may do, and what happens when the file changes."""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core_broker.web_access.errors import Unavailable
from core_broker.web_access.passwords import Verdict
from core_broker.web_access.rules import Operation, ResourceType
from schema_registry.registry.karapace_file import KarapaceFile
from tests.support.patience import eventually
from tests.support.registry_access import user, users_file


def permits(file: KarapaceFile, name: str, kind: ResourceType = ResourceType.SUBJECT) -> set[Operation]:
    return {operation for operation in Operation if file.permits("alice", operation, kind, name)}


def permitting(path: Path, *permissions: tuple[str, str]) -> KarapaceFile:
    return KarapaceFile(users_file(path / "users.json", permissions=[("alice", *one) for one in permissions]))


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha512", "scrypt"])
async def test_a_password_is_checked_with_each_algorithm(tmp_path: Path, algorithm: str) -> None:
    path = tmp_path / "users.json"
    path.write_text(json.dumps({"users": [user("alice", "sécret", algorithm=algorithm)], "permissions": []}))
    file = KarapaceFile(path)
    answers = [await file.verify(*login) for login in (("alice", "sécret"), ("alice", "secret"), ("bob", "sécret"))]
    assert answers == [Verdict.RIGHT, Verdict.WRONG, Verdict.UNKNOWN_USER]


async def test_a_hash_of_another_program_is_accepted(tmp_path: Path) -> None:
    # printf secret | PBKDF2-HMAC-SHA512 with 5000 iterations and the salt "salt", by OpenSSL
    digest = "CUXHCPbYxKenfgrWHqiIuqAd1VCVkR7YWGdyCnmRFCyRFsblNuriBcesDSvgaxCPb397R4ueFcjWzBcCNtGOYw=="
    one = {"username": "alice", "algorithm": "sha512", "salt": "salt", "password_hash": digest}
    path = tmp_path / "users.json"
    path.write_text(json.dumps({"users": [one], "permissions": []}))
    assert await KarapaceFile(path).verify("alice", "secret") is Verdict.RIGHT


def test_read_lets_a_user_see_and_write_also_change_but_not_administer(tmp_path: Path) -> None:
    file = permitting(tmp_path, ("Read", "Subject:read"), ("Write", "Subject:write"))
    reading = {Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS}
    assert permits(file, "read") == reading
    assert permits(file, "write") == reading | {Operation.WRITE, Operation.DELETE, Operation.ALTER_CONFIGS}
    assert permits(file, "other") == set()


def test_config_is_the_config_of_all_subjects_and_nothing_else(tmp_path: Path) -> None:
    file = permitting(tmp_path, ("Write", "Config:"))
    assert permits(file, "registry", ResourceType.REGISTRY) == {Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}
    assert permits(file, "orders") == set()
    assert permits(permitting(tmp_path, ("Write", "Subject:.*")), "registry", ResourceType.REGISTRY) == set()


@pytest.mark.parametrize(
    "expression,matching,other",
    [
        ("Subject:orders", ["orders", "orders-value"], ["my-orders", "order"]),
        ("Subject:orders$", ["orders"], ["orders-value"]),
        ("Subject:(a|b)-.*", ["a-x", "b-"], ["c-x", "a"]),
        (".*", ["anything", ":.staging:x"], []),
        ("Subject::.staging:", [":.staging:x"], ["x"]),
        ("subject:", [], ["x"]),
    ],
)
def test_a_permission_is_for_all_that_begins_with_a_match(
    tmp_path: Path, expression: str, matching: list[str], other: list[str]
) -> None:
    file = permitting(tmp_path, ("Read", expression))
    assert [name for name in [*matching, *other] if permits(file, name)] == matching


def test_an_expression_that_is_hard_for_backtracking_is_no_work(tmp_path: Path) -> None:
    file = permitting(tmp_path, ("Read", "Subject:(a+)+(a+)+(a+)+b"))
    assert permits(file, "a" * 20_000) == set()


@pytest.mark.parametrize(
    "change,reason",
    [
        (lambda one: one.pop("users"), "users"),
        (lambda one: one["users"][0].update(algorithm="md5"), "users\\[0\\].algorithm"),
        (lambda one: one["users"][0].pop("salt"), "salt"),
        (lambda one: one["permissions"][0].update(operation="All"), "permissions\\[0\\].operation"),
        (lambda one: one["permissions"][0].update(resource="Subject:("), "permissions\\[0\\].resource.*missing"),
        (lambda one: one["permissions"][0].update(resource="(?=Subject)"), "RE2"),
        (lambda one: one["permissions"][0].update(resource="x" * 1025), "1024"),
    ],
)
def test_a_file_that_is_not_valid_is_refused_without_its_secrets(
    tmp_path: Path, change: Callable[[Any], object], reason: str
) -> None:
    document: Any = {
        "users": [user("alice", "secret")],
        "permissions": [{"username": "alice", "operation": "Read", "resource": "Subject:"}],
    }
    digest = document["users"][0]["password_hash"]
    change(document)
    path = tmp_path / "users.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=reason) as refusal:
        KarapaceFile(path)
    assert digest not in str(refusal.value)


def test_a_missing_file_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nowhere.json.*No such file"):
        KarapaceFile(tmp_path / "nowhere.json")


async def test_a_changed_file_is_read_again_and_a_broken_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "users.json"
    file = permitting(tmp_path, ("Read", "Subject:a"))
    async with file.following(seconds=0.01):
        with caplog.at_level(logging.ERROR):
            path.write_text('{"users": [{"username": "x", "password_hash": "abc')
            await asyncio.to_thread(eventually, lambda: "registry.authfile is not valid" in caplog.text)
        assert permits(file, "a")
        assert "abc" not in caplog.text
        users_file(path, permissions=[("alice", "Read", "Subject:b")])
        await asyncio.to_thread(eventually, lambda: permits(file, "b"))
        assert not permits(file, "a")
        caplog.clear()
        path.unlink()
        await asyncio.to_thread(eventually, lambda: "registry.authfile is not valid" in caplog.text)
        assert permits(file, "b")


async def test_only_so_many_passwords_wait_to_be_checked(tmp_path: Path) -> None:
    file = KarapaceFile(users_file(tmp_path / "users.json"))
    results = await asyncio.gather(
        *(file.verify("alice", str(number)) for number in range(200)), return_exceptions=True
    )
    refused = [result for result in results if isinstance(result, Unavailable)]
    assert len(refused) == 200 - 64
    assert results[:64] == [Verdict.WRONG] * 64


def test_no_representation_of_a_user_has_the_hash(tmp_path: Path) -> None:
    file = KarapaceFile(users_file(tmp_path / "users.json"))
    assert user("alice", "alice-secret")["password_hash"] not in repr(vars(file))
