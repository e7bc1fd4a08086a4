from pathlib import Path

import pytest

from core_broker.service.clock import ManualClock, SystemClock
from deploy.certificates.authority import Authority
from deploy.doctor.finding import Context, Level
from deploy.doctor.secrets import certificates, secrets
from deploy.security.folder import SecurityFolder

DAY_MS = 86_400_000


@pytest.fixture
def folder(tmp_path: Path) -> SecurityFolder:
    found = SecurityFolder(tmp_path)
    found.prepare(certificates=("registry",), users=(), hosts=("localhost",))
    return found


def context_of(folder: SecurityFolder) -> Context:
    return Context(environment={}, data=folder.path.parent)


def test_nothing_is_said_about_a_platform_without_users(tmp_path: Path) -> None:
    context = Context(environment={}, data=tmp_path)
    assert [*secrets(context), *certificates(context)] == []


def test_a_folder_as_it_is_made_is_fine(folder: SecurityFolder) -> None:
    findings = [*secrets(context_of(folder)), *certificates(context_of(folder))]
    assert [finding.level for finding in findings] == [Level.OK, Level.OK]


def test_a_secret_that_others_may_read_is_a_problem(folder: SecurityFolder) -> None:
    folder.password_file("admin").chmod(0o644)
    (finding,) = secrets(context_of(folder))
    assert finding.level is Level.PROBLEM
    assert "security/passwords/admin" in finding.found
    assert "chmod" in finding.next_steps[0]


@pytest.mark.parametrize(("days", "level"), [(10, Level.WARNING), (-3, Level.PROBLEM)])
def test_a_certificate_that_expires_soon_or_has_is_reported(folder: SecurityFolder, days: int, level: Level) -> None:
    clock = ManualClock(SystemClock().now_ms() - 100 * DAY_MS)
    Authority(folder.path, clock).renew("registry", days=100 + days)
    (finding,) = certificates(context_of(folder))
    assert finding.level is level
    assert finding.subject == "Certificate: registry"
    assert "caudal certificate renew registry" in finding.next_steps[0]


def test_an_authority_that_cannot_be_read_is_a_problem(folder: SecurityFolder) -> None:
    folder.authority_file.write_text("x")
    (finding,) = certificates(context_of(folder))
    assert finding.level is Level.PROBLEM
