"""One mixed cluster of each kind for the tests that do not change who is in it."""

from collections.abc import Iterator

import pytest

from tests.support.mixed_cluster import MixedCluster


@pytest.fixture(scope="module", params=["caudal", "kafka"])
def mixed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    """Five brokers, whose quorum is of the kind that the parameter names."""
    with MixedCluster(tmp_path_factory.mktemp("mixed"), quorum=request.param).running() as cluster:
        yield cluster
