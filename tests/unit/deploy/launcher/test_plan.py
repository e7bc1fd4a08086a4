from pathlib import Path

import pytest

from deploy.launcher.plan import METRICS, SPARK, is_open, make_plan
from deploy.launcher.request import Refused, Request
from deploy.stack import STACK
from rest_proxy.settings import ProxySettings


def test_by_default_everything_runs_on_its_usual_port_for_this_machine_alone() -> None:
    plan = make_plan(Request(data="river"))
    assert plan.data == Path("river").absolute()
    assert plan.services == STACK
    assert plan.ports == {
        "broker": 9092,
        METRICS: 9404,
        "registry": 8081,
        "rest-proxy": 8082,
        "connect": 8083,
        SPARK: 15002,
    }
    assert plan.settings_of("broker")["listeners"] == "PLAINTEXT://localhost:9092"
    assert plan.settings_of("registry")["listeners"] == "http://localhost:8081"
    assert not is_open(plan.bind)


def test_folders_are_those_of_the_services_and_connects_is_sparks() -> None:
    plan = make_plan(Request(data="/river"))
    assert plan.settings_of("broker")["log.dirs"] == "/river/broker"
    assert plan.settings_of("registry")["database.url"] == "sqlite:////river/registry/registry.db"
    assert plan.settings_of("rest-proxy")["state.dir"] == "/river/rest-proxy"
    assert plan.settings_of("connect")["spark.caudal.data.dir"] == "/river/spark"


def test_a_rest_proxy_that_is_started_alone_keeps_its_state_in_the_folder_of_the_platform() -> None:
    plan = make_plan(Request())
    assert Path(ProxySettings.parse({}).state_dir).absolute() == plan.folder_of("rest-proxy")


def test_endpoints_are_addresses_of_brokers_and_urls_of_the_rest() -> None:
    plan = make_plan(Request())
    assert plan.endpoint_of("broker") == "localhost:9092"
    assert plan.endpoint_of("connect") == "http://localhost:8083"
    assert plan.watch_of("broker") == "http://localhost:9404"
    assert plan.watch_of("connect") == "http://localhost:8083"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "*"])
def test_every_address_is_open_to_others_and_reached_by_localhost(host: str) -> None:
    plan = make_plan(Request(host=host))
    assert plan.settings_of("broker")["listeners"] == "PLAINTEXT://:9092"
    assert plan.endpoint_of("registry") == "http://localhost:8081"
    assert is_open(plan.bind)


def test_an_address_of_version_6_stands_in_brackets() -> None:
    plan = make_plan(Request(host="::1"))
    assert plan.endpoint_of("registry") == "http://[::1]:8081"
    assert plan.settings_of("broker")["metrics.listener"] == "http://[::1]:9404"
    assert not is_open(plan.bind)


def test_an_address_of_a_network_is_open_and_reached_by_itself() -> None:
    plan = make_plan(Request(host="192.168.1.5"))
    assert is_open(plan.bind)
    assert plan.settings_of("connect")["bootstrap.servers"] == "192.168.1.5:9092"


def test_any_ports_may_be_mixed_with_chosen_ones() -> None:
    ports = make_plan(Request(ports=("broker=19092", "any"))).ports
    assert ports["broker"] == 19092
    assert {port for name, port in ports.items() if name != "broker"} == {0}


def test_a_service_that_is_left_out_has_no_port_and_no_service_waits_for_it() -> None:
    plan = make_plan(Request(without=("broker", "connect"), bootstrap="kafka:9092"))
    assert list(plan.ports) == ["registry", "rest-proxy"]
    assert plan.needs_of(plan.services[1]) == ("registry",)
    assert plan.settings_of("rest-proxy")["bootstrap.servers"] == "kafka:9092"
    assert not plan.has_spark


def test_a_setting_goes_to_its_service_and_wins() -> None:
    plan = make_plan(Request(settings=("broker:num.partitions=3", "broker:log.dirs=/fast")))
    assert plan.settings_of("broker")["num.partitions"] == "3"
    assert plan.settings_of("broker")["log.dirs"] == "/fast"
    assert "num.partitions" not in plan.settings_of("connect")


def test_a_value_may_hold_colons_and_equal_signs() -> None:
    plan = make_plan(Request(settings=("registry:database.url=postgresql://u:p@h/db?a=b",)))
    assert plan.settings_of("registry")["database.url"] == "postgresql://u:p@h/db?a=b"


@pytest.mark.parametrize(
    ("request_", "expected", "next_step"),
    [
        (Request(without=("zookeeper",)), "--without zookeeper: there is no such service", "broker, registry"),
        (Request(without=("broker", "registry", "rest-proxy", "connect")), "leaves nothing to run", "there are"),
        (Request(without=("broker",)), "--without broker: rest-proxy needs one", "--bootstrap HOST:PORT"),
        (Request(without=("registry",)), "--without registry: rest-proxy needs one", "--registry URL"),
        (Request(without=("registry", "rest-proxy")), "connect needs one", "leave out"),
        (Request(bootstrap="kafka:9092"), "but one is to run here", "--without broker"),
        (Request(registry="http://r"), "but one is to run here", "--without registry"),
        (Request(ports=("console=8080",)), "nothing called console listens here", "broker-metrics"),
        (Request(ports=("connect=1",), without=("connect",)), "nothing called connect listens here", "rest-proxy"),
        (Request(ports=("broker",)), "must be `any` or NAME=PORT", "names are"),
        (Request(ports=("broker=http",)), "--ports broker=http must be `any` or NAME=PORT", "names are"),
        (Request(ports=("broker=70000",)), "0 (any free one) to 65535", "names are"),
        (Request(ports=("broker=8081",)), "broker and registry cannot both listen on port 8081", "--ports registry"),
        (Request(settings=("kafka:a=b",)), "no service called kafka runs here", "broker, registry"),
        (Request(settings=("connect:spark.caudal.data.dir=/x",)), "the launcher sets that itself", "--data DIR"),
        (Request(settings=("broker:listeners=PLAINTEXT://:1",)), "the launcher sets that itself", "--ports"),
        (Request(data="a,b"), "has ',' in it", "--data DIR"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_request_that_cannot_work_is_refused_with_what_to_do(
    request_: Request, expected: str, next_step: str
) -> None:
    with pytest.raises(Refused) as refused:
        make_plan(request_)
    assert expected in refused.value.text
    assert any(next_step in step for step in refused.value.next_steps)


@pytest.mark.parametrize("given", ["num.partitions=3", "broker:num.partitions", "broker", ":a=b", "broker:=b"])
def test_a_setting_without_service_key_or_value_is_refused(given: str) -> None:
    with pytest.raises(Refused):
        make_plan(Request(settings=(given,)))
