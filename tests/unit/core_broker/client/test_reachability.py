import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core_broker.client.admin import Admin
from core_broker.client.errors import Unreachable
from core_broker.client.reachability import Reachability
from core_broker.client.settings import ClientSettings
from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.cluster import BrokerCluster

pytestmark = pytest.mark.processes

QUIET = {"log_level": "0"}


def test_a_cluster_that_answers_is_believed_for_a_while(broker: BrokerProcess) -> None:
    reachability = Reachability(ClientSettings(bootstrap_servers=broker.bootstrap, properties=QUIET))
    assert not reachability.is_believed()
    reachability.check()
    assert reachability.is_believed()
    reachability.doubt()
    assert not reachability.is_believed()


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def test_a_cluster_that_is_not_there_is_told_with_its_address(closed_port: int) -> None:
    address = f"127.0.0.1:{closed_port}"
    reachability = Reachability(ClientSettings(bootstrap_servers=address, properties=QUIET), patience_seconds=0.2)
    with pytest.raises(Unreachable, match=address):
        reachability.check()


def test_a_cluster_that_is_busy_is_waited_for_and_one_that_stays_silent_is_not(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        settings = ClientSettings(bootstrap_servers=broker.bootstrap, properties=QUIET)
        reachability = Reachability(settings, patience_seconds=0.2)
        reachability.check()
        reachability.doubt()
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            going_on = threading.Timer(0.5, os.kill, (broker.pid, signal.SIGCONT))
            going_on.start()
            reachability.check()
            going_on.join()
            reachability.doubt()
            os.kill(broker.pid, signal.SIGSTOP)
            with pytest.raises(Unreachable, match=broker.bootstrap):
                reachability.check()
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        eventually(lambda: _responds(reachability))


def test_a_cluster_is_reached_while_its_controller_stands_still(tmp_path: Path) -> None:
    with BrokerCluster(tmp_path) as brokers:
        settings = ClientSettings(bootstrap_servers=brokers.bootstrap, properties=QUIET)
        reachability = Reachability(settings)
        reachability.check()
        controller = brokers[Admin(settings).cluster().controller_id]
        reachability.doubt()
        os.kill(controller.pid, signal.SIGSTOP)
        try:
            reachability.check()
        finally:
            os.kill(controller.pid, signal.SIGCONT)


def _responds(reachability: Reachability) -> bool:
    try:
        reachability.check()
    except Unreachable:
        return False
    return True


def test_those_who_ask_at_once_share_one_question(closed_port: int) -> None:
    settings = ClientSettings(bootstrap_servers=f"127.0.0.1:{closed_port}", properties=QUIET)
    reachability = Reachability(settings, patience_seconds=0.2)
    asked: list[int] = []
    everyone_asks = threading.Barrier(8)
    answers = reachability._responds

    def counting() -> bool:
        asked.append(threading.get_ident())
        return answers()

    def check() -> None:
        everyone_asks.wait(60)
        reachability.check()

    reachability._responds = counting  # type: ignore[method-assign]  # counts the questions, and asks them
    with ThreadPoolExecutor(8) as threads:
        failures = [future.exception() for future in [threads.submit(check) for _ in range(8)]]
    assert all(isinstance(failure, Unreachable) for failure in failures)
    assert len(asked) == 1
