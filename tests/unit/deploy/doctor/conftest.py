"""What the checks are given in tests."""

from pathlib import Path

import pytest

from deploy.doctor.finding import Context


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """An empty environment and an empty data folder."""
    return Context(environment={}, data=tmp_path)
