"""Decides which wake-ups are due, given the wanted tasks, the state of Redis and earlier wake-ups; does no I/O."""

from collections.abc import Mapping
from typing import Final

import msgspec

from connect.executors.celery.desired_tasks import Seen, Survey
from connect.runtime.models import TaskPlan
from connect.stores.states import TaskId

ROUND_S: Final = 2.0
"""How often the leader checks all tasks, unless an event comes earlier."""
_UNHEARD_S: Final = 2.0
"""A message that has left the queue and led to no lease for this long is lost."""


class Sent(msgspec.Struct, frozen=True):
    """The last wake-up of a task."""

    epoch: int
    generation: int
    at: float


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """The actions of one round."""

    writes: list[TaskPlan]
    """Plans that Redis lacks, or has in another version."""
    wakes: list[Seen]
    """Tasks without an owner."""
    next_s: float
    """When to check again at the latest."""


def due(survey: Survey, wanted: Mapping[TaskId, TaskPlan], sent: Mapping[TaskId, Sent], *, now: float) -> Due:
    """Compare; a task that has ended on its own is not run again until its plan changes."""
    plans = ((seen, wanted[seen.id]) for seen in survey.tasks)
    writes = [plan for seen, plan in plans if seen.wanted != plan.generation or seen.target is not plan.target]
    free = [seen for seen in survey.tasks if not seen.held_s and seen.ended != wanted[seen.id].generation]
    is_cooling = survey.cooling_s > 0
    wakes = [] if is_cooling else [seen for seen in free if _is_due(seen, wanted[seen.id], sent, survey, now=now)]
    moments = [ROUND_S, *(seen.held_s for seen in survey.tasks if seen.held_s)]
    if is_cooling:
        moments.append(survey.cooling_s)
    return Due(writes=writes, wakes=wakes, next_s=min(moments))


def _is_due(seen: Seen, plan: TaskPlan, sent: Mapping[TaskId, Sent], survey: Survey, *, now: float) -> bool:
    last = sent.get(seen.id)
    if last is None or (last.epoch, last.generation) != (seen.epoch, plan.generation):
        return True
    if now - last.at < _UNHEARD_S:
        return False
    # While messages wait, workers are busy or gone: another message would only lengthen the queue.
    return survey.waiting == 0
