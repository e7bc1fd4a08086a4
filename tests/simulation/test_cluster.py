"""The whole cluster under faults, a different run for each seed; `make simulate SEEDS=N` runs more of them."""

import os
import re
import subprocess
import sys

import pytest

from tests.simulation.broken_rules import RULES

CPU_SECONDS = float(os.environ.get("SIMULATION_CPU_SECONDS", "40"))


def simulate(*options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.simulation", *options]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=3600)


def test_a_cluster_under_faults_keeps_every_promise() -> None:
    done = simulate("--seeds", "10000", "--cpu-seconds", str(CPU_SECONDS), "--workers", "1")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_seed_always_gives_the_same_run() -> None:
    digests = {re.findall(r"digest (-?\d+)", simulate("--seed", "7").stdout)[0] for _ in range(2)}
    assert len(digests) == 1


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_is_switched_off_is_noticed(rule: str) -> None:
    done = simulate("--broken-rules", "--without", rule, "--seeds", "400")
    assert done.returncode == 0, done.stdout + done.stderr
