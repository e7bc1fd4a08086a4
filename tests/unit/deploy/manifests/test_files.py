"""The files in the repository are those that the stack makes."""

import re
from pathlib import Path

import pytest

from deploy.manifests.files import documents
from deploy.stack import STACK
from tests.support.deployment import DEPLOY


def test_generated_files_are_current() -> None:
    assert [path for path, text in documents().items() if path.read_text(encoding="utf-8") != text] == []


@pytest.mark.parametrize("folder", ["compose", "config", "monitoring", "systemd"])
def test_nothing_in_a_generated_folder_is_left_over(folder: str) -> None:
    found = {path for path in (DEPLOY / folder).rglob("*") if path.is_file()}
    assert found == {path for path in documents() if (DEPLOY / folder) in path.parents}


@pytest.mark.parametrize("path", sorted((DEPLOY / "helm").rglob("templates/*")), ids=lambda path: path.name)
def test_templates_that_are_written_by_hand_repeat_no_port(path: Path) -> None:
    ports = {str(port) for service in STACK for port in (service.port, service.metrics_port) if port}
    assert not ports & set(re.findall(r"\d+", path.read_text(encoding="utf-8")))
