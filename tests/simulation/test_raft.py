import os

import pytest

from tests.simulation.raft import simulate

SEEDS = int(os.environ.get("SIMULATION_SEEDS", "200"))


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_the_quorum_never_loses_or_reorders_what_it_committed(first: int) -> None:
    for seed in range(first, min(first + 20, SEEDS)):
        try:
            simulate(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
