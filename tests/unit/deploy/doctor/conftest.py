"""What the checks are given in tests."""

from pathlib import Path

import pytest

from deploy.doctor.finding import Surroundings


@pytest.fixture
def surroundings(tmp_path: Path) -> Surroundings:
    """An empty environment and an empty data folder."""
    return Surroundings(environment={}, data=tmp_path)
