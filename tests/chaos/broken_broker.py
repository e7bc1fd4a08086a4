"""`python -m tests.chaos.broken_broker RULE [--set key=value]...`: a broker with one rule of replication switched off.

It proves that the checker can fail: what such a cluster loses must be in the verdict.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Final

from core_broker.__main__ import main
from core_broker.cluster.replicas.leader import LeaderReplica


def commit_without_followers() -> None:
    """Let the high watermark count only the leader: it acknowledges what no other replica has."""

    def advance(self: LeaderReplica, end_offset: int, *, min_in_sync: int, now: float) -> bool:
        rises = end_offset > self.high_watermark
        self.high_watermark = end_offset
        return rises

    LeaderReplica.advance = advance  # type: ignore[method-assign]  # that is what this module is for


RULES: Final[Mapping[str, Callable[[], None]]] = {"high-watermark": commit_without_followers}

if __name__ == "__main__":
    RULES[sys.argv.pop(1)]()
    sys.exit(main())
