"""Which wake-ups are due: decided from what is wanted, what Redis knows and what was sent, without any I/O."""

from collections.abc import Mapping
from typing import Final

import msgspec

from connect.executors.celery.desired_tasks import Seen, Survey
from connect.runtime.models import TaskPlan
from connect.stores.states import TaskId

ROUND_S: Final = 2.0
"""How often the leader looks at everything, if nothing tells it earlier."""
_UNHEARD_S: Final = 2.0
"""A message that is not in the queue any more and led to no lease for this long is lost."""


class Sent(msgspec.Struct, frozen=True):
    """The last wake-up of a task."""

    epoch: int
    generation: int
    at: float


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """What one round does."""

    writes: list[TaskPlan]
    """Plans that Redis does not know, or knows otherwise."""
    wakes: list[Seen]
    """Tasks without an owner."""
    next_s: float
    """When to look again at the latest."""


def due(survey: Survey, wanted: Mapping[TaskId, TaskPlan], sent: Mapping[TaskId, Sent], *, now: float) -> Due:
    """Compare; a task that has ended by itself is left alone until its plan is another one."""
    writes = [wanted[seen.id] for seen in survey.tasks if _differs(seen, wanted[seen.id])]
    free = [seen for seen in survey.tasks if not seen.held_s and seen.ended != wanted[seen.id].generation]
    is_cooling = survey.cooling_s > 0
    wakes = [] if is_cooling else [seen for seen in free if _is_due(seen, wanted[seen.id], sent, survey, now=now)]
    moments = [ROUND_S, *(seen.held_s for seen in survey.tasks if seen.held_s)]
    if is_cooling:
        moments.append(survey.cooling_s)
    return Due(writes=writes, wakes=wakes, next_s=min(moments))


def _differs(seen: Seen, plan: TaskPlan) -> bool:
    return seen.wanted != plan.generation or seen.target is not plan.target


def _is_due(seen: Seen, plan: TaskPlan, sent: Mapping[TaskId, Sent], survey: Survey, *, now: float) -> bool:
    last = sent.get(seen.id)
    if last is None or (last.epoch, last.generation) != (seen.epoch, plan.generation):
        return True
    if now - last.at < _UNHEARD_S:
        return False
    # Where messages wait, workers are busy or away: another message would only make the queue longer.
    return survey.waiting == 0
