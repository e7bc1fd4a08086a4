"""The frame keeps its promises: scripts resolve, named paths exist, generated docs are current, starts stay cheap."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from deploy import settings_docs

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), ROOT / "deploy" / "MIXED_CLUSTERS.md"])
PACKAGES = ("core_broker", "schema_registry", "rest_proxy", "connect", "streams", "connectors", "deploy")
_PATH = re.compile(rf"`((?:{'|'.join(PACKAGES)}|tests|\.ci)/[\w./*<>-]*|[A-Z]+\.md|Makefile|pyproject\.toml)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CHANGES = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
"""In the order in which Keep a Changelog has them."""


@pytest.mark.parametrize("target", PROJECT["project"]["scripts"].values())
def test_console_script_resolves(target: str) -> None:
    module, _, function = target.partition(":")
    assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_named_in_a_document_exist(document: Path) -> None:
    named = {path for path in _PATH.findall(document.read_text()) if "<" not in path}
    assert [path for path in sorted(named) if not list(ROOT.glob(path.rstrip("/")))] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_in_a_document_lead_somewhere(document: Path) -> None:
    text = document.read_text()
    headings = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(text)]
    links = [link for link in _LINK.findall(text) if "://" not in link]
    broken = [link for link in links if link.startswith("#") and headings.count(link[1:]) != 1]
    broken += [link for link in links if not (document.parent / link.partition("#")[0]).exists()]
    assert broken == []


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = re.findall(r"^\*\*(\d+)\. ", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    assert sorted(map(int, numbers)) == list(range(1, len(numbers) + 1))


def test_the_changelog_has_the_sections_of_keep_a_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    for version in text.split("\n## ")[1:]:
        sections = re.findall(r"^### (.*)", version, re.MULTILINE)
        assert sections == [name for name in CHANGES if name in sections]


def test_the_excerpt_of_the_tour_in_the_readme_is_taken_from_the_whole_tour() -> None:
    excerpt = (ROOT / "README.md").read_text().partition("```text\n")[2].partition("```")[0]
    lines = iter((ROOT / "deploy" / "quickstart" / "TOUR.md").read_text().splitlines())
    wanted = [line for line in excerpt.splitlines() if line.strip() not in ("", "…")]
    assert wanted
    assert [line for line in wanted if line not in lines] == []  # in this order


def test_every_package_says_what_it_is_for() -> None:
    assert [name for name in PACKAGES if not (ROOT / name / "README.md").exists()] == []


def test_generated_settings_documentation_is_current() -> None:
    assert [path for path, text in settings_docs.documents().items() if path.read_text() != text] == []


@pytest.mark.processes
@pytest.mark.parametrize(
    "module,unwanted",
    [
        ("core_broker.service.clock", {"msgspec", "asyncio"}),
        ("core_broker.service.settings", {"pydantic", "typer", "rich", "prometheus_client"}),
        ("core_broker.settings", {"pydantic", "typer", "rich", "prometheus_client", "confluent_kafka"}),
        ("core_broker.service.metrics", {"prometheus_client"}),
        (
            "core_broker.broker",
            {"pydantic", "typer", "rich", "prometheus_client", "confluent_kafka"},
        ),
        ("schema_registry.settings", {"pydantic", "fastapi", "sqlalchemy", "typer", "rich"}),
        (
            "schema_registry.app",
            {"alembic", "fastavro", "grpc_tools", "jsonschema", "prometheus_client", "confluent_kafka", "typer"},
        ),
        ("deploy.cli", {"typer", "rich", "confluent_kafka", "asyncio"}),
    ],
)
def test_import_stays_cheap(module: str, unwanted: set[str]) -> None:
    code = f"import sys, {module}; print(*sorted(set(sys.modules) & {unwanted!r}))"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []
