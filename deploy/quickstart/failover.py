"""The step for clusters: a broker is killed, and an order that is sent at that moment arrives all the same."""

import os
import signal
import time
from typing import Final

from core_broker.client.admin import Admin
from deploy.launcher import state
from deploy.launcher.state import ServiceState
from deploy.quickstart import events, screen
from deploy.quickstart.tables import orders_in_shop
from deploy.quickstart.tour import StepFailed, Tour, wait_for

_TOPIC: Final = "orders"


def survive_by_hand(tour: Tour) -> list[str]:
    """The commands of `survive`."""
    _, victim = _leader(tour)
    return [f"kill -9 {victim.pid}", *events.produce_more_by_hand(tour), tour.addresses.caudal("cluster", "cluster")]


def survive(tour: Tour) -> None:
    """Kill the broker that leads the topic of orders, send another order, and wait for it and for the broker."""
    name, victim = _leader(tour)
    assert victim.pid is not None
    os.kill(victim.pid, signal.SIGKILL)
    began = time.monotonic()
    with screen.progress(f"waiting until other brokers lead what {name} led"):
        order = events.produce_more(tour)
    after_s = time.monotonic() - began
    wait_for(
        lambda: [row[0] for row in orders_in_shop(tour)],
        lambda found: order in found,
        otherwise=f"order {order} is not in {tour.addresses.shop}",
        log=tour.addresses.logs.get("connect"),
    )
    screen.success(f"{name} led the orders and was killed; order {order} was acknowledged {after_s:.1f} s later")
    wait_for(
        lambda: _service(tour, name),
        lambda found: found.state == "ready" and found.restarts > victim.restarts,
        otherwise=f"{name} is not back",
        log=tour.addresses.logs.get(name),
    )
    screen.remark(f"order {order} is a row of SQLite, and the launcher has started {name} again")


def _leader(tour: Tour) -> tuple[str, ServiceState]:
    """The broker that leads the first partition of the orders."""
    admin = Admin(tour.addresses.cluster())
    name = f"broker-{admin.topics([_TOPIC])[0].partitions[0].leader}"
    return name, _service(tour, name)


def _service(tour: Tour, name: str) -> ServiceState:
    platform = state.read(tour.addresses.data)
    if platform is None or name not in platform.services:
        raise StepFailed(f"{name} does not run in {tour.addresses.data}")
    return platform.services[name]
