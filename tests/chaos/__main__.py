"""`python -m tests.chaos [--minutes M] [--faults N] [--kinds a,b] [--mixed KIND] [--secure]`: faults and a verdict."""

import argparse
import random
import sys
from pathlib import Path
from typing import Final

from tests.chaos.namespaces import can_make_namespaces
from tests.chaos.nodes import CAUDAL, KAFKA
from tests.chaos.run import Plan, run
from tests.chaos.verdict import judge, print_verdict
from tests.support.kafka import KAFKA_JARS

NAMESPACES: Final = "namespaces"
PROXIES: Final = "proxies"
_SEEDS: Final = 1_000_000


def main() -> int:
    """Run, print the verdict, and return 0 if every figure passes."""
    parser = argparse.ArgumentParser(prog="tests.chaos", description="Faults for brokers under load.")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long faults are injected")
    parser.add_argument("--faults", type=int, default=1_000_000, help="how many faults at most")
    parser.add_argument("--kinds", default="", help="which faults, separated by commas; all by default")
    parser.add_argument("--rate", type=int, default=1500, help="records per second of each of two producers")
    parser.add_argument(
        "--mixed",
        choices=[CAUDAL, KAFKA],
        help="five brokers instead of three: a quorum of this kind, and two brokers of the other",
    )
    parser.add_argument(
        "--network",
        choices=[NAMESPACES, PROXIES],
        help="what connections are cut by: namespaces of the kernel, where they can be had, or proxies",
    )
    parser.add_argument("--secure", action="store_true", help="TLS and SASL between all parties, and an authorizer")
    parser.add_argument("--seed", type=int, default=random.randrange(_SEEDS))
    parser.add_argument("--directory", type=Path, default=Path("chaos"), help="for all files; emptied first")
    arguments = parser.parse_args()
    if arguments.mixed and not KAFKA_JARS:
        parser.error("set KAFKA_JARS to a folder with the jars of a Kafka release: `make chaos MIXED=…` fetches them")
    if arguments.mixed and arguments.network == NAMESPACES:
        parser.error("a mixed cluster is cut by proxies: leave --network out")
    if arguments.mixed and arguments.secure:
        parser.error("a mixed cluster has no security here: leave --secure out")
    network = arguments.network or (NAMESPACES if not arguments.mixed and can_make_namespaces() else PROXIES)
    plan = Plan(
        directory=arguments.directory.resolve(),
        seed=arguments.seed,
        seconds=arguments.minutes * 60,
        faults_max=arguments.faults,
        kinds=[kind for kind in arguments.kinds.split(",") if kind],
        rate=arguments.rate,
        quorum=arguments.mixed,
        uses_namespaces=network == NAMESPACES,
        is_secure=arguments.secure,
    )
    print(f"seed {plan.seed}, connections cut by {network}, histories in {plan.directory}", flush=True)
    result = run(plan, lambda line: print(line, flush=True))
    figures = judge(result)
    print_verdict(result, figures)
    return 0 if all(figure.passes for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
