from pathlib import Path

import pytest

from core_broker.settings import BrokerSettings
from deploy.launcher import state
from deploy.launcher.plan import METRICS, SPARK, is_open, make_plan
from deploy.launcher.request import Refused, Request
from deploy.launcher.state import PlatformState
from deploy.security.folder import SecurityFolder
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
        "streams": 8088,
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
    assert plan.settings_of("streams")["ksql.streams.state.dir"] == "/river/streams"


def test_connect_and_streams_share_one_spark_and_its_settings() -> None:
    plan = make_plan(Request(data="/river", settings=("connect:spark.master=local[2]", "connect:group.id=g")))
    for name in ("connect", "streams"):
        settings = plan.settings_of(name)
        assert settings["spark.caudal.data.dir"] == "/river/spark"
        assert settings["spark.caudal.connect.port"] == "15002"
        assert settings["spark.master"] == "local[2]"
    assert "group.id" not in plan.settings_of("streams")


def test_streams_alone_has_spark_too() -> None:
    plan = make_plan(Request(without=("connect",)))
    assert plan.has_spark
    assert SPARK in plan.ports
    assert "ksql.connect.url" not in plan.settings_of("streams")


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
    plan = make_plan(Request(host=host, insecure=True))
    assert plan.settings_of("broker")["listeners"] == "PLAINTEXT://:9092"
    assert plan.endpoint_of("registry") == "http://localhost:8081"
    assert is_open(plan.bind)


def test_an_address_of_version_6_stands_in_brackets() -> None:
    plan = make_plan(Request(host="::1"))
    assert plan.endpoint_of("registry") == "http://[::1]:8081"
    assert plan.settings_of("broker")["metrics.listener"] == "http://[::1]:9404"
    assert not is_open(plan.bind)


def test_an_address_of_a_network_is_open_and_reached_by_itself() -> None:
    plan = make_plan(Request(host="192.168.1.5", insecure=True))
    assert is_open(plan.bind)
    assert plan.settings_of("connect")["bootstrap.servers"] == "192.168.1.5:9092"


def test_any_ports_may_be_mixed_with_chosen_ones() -> None:
    ports = make_plan(Request(ports=("broker=19092", "any"))).ports
    assert ports["broker"] == 19092
    assert {port for name, port in ports.items() if name != "broker"} == {0}


def test_a_service_that_is_left_out_has_no_port_and_no_service_waits_for_it() -> None:
    plan = make_plan(Request(without=("broker", "connect", "streams"), bootstrap="kafka:9092"))
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
        (
            Request(without=("broker", "registry", "rest-proxy", "connect", "streams")),
            "leaves nothing to run",
            "there are",
        ),
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


# --- several brokers ---


def test_brokers_of_a_cluster_have_numbers_and_ports_and_folders_of_their_own() -> None:
    plan = make_plan(Request(data="/river", brokers=3))
    assert [service.name for service in plan.services[:4]] == ["broker-1", "broker-2", "broker-3", "registry"]
    assert [plan.ports[f"broker-{number}"] for number in (1, 2, 3)] == [9092, 9094, 9096]
    assert [plan.ports[f"broker-{number}-controller"] for number in (1, 2, 3)] == [9093, 9095, 9097]
    assert [plan.watch_of(f"broker-{number}") for number in (1, 2, 3)] == [
        f"http://localhost:{port}" for port in (9404, 9405, 9406)
    ]
    assert [plan.settings_of(f"broker-{number}")["log.dirs"] for number in (1, 2, 3)] == [
        "/river/broker",
        "/river/broker-2",
        "/river/broker-3",
    ]


def test_the_first_broker_forms_the_cluster_and_the_others_join_it() -> None:
    plan = make_plan(Request(brokers=3, racks=True))
    for number in (1, 2, 3):
        settings = plan.settings_of(f"broker-{number}")
        BrokerSettings.parse(settings)  # refuses what is unknown or contradictory
        assert settings["node.id"] == str(number)
        assert settings["broker.rack"] == f"rack-{number}"
        assert settings["default.replication.factor"] == "3"
        assert settings["min.insync.replicas"] == settings["transaction.state.log.min.isr"] == "2"
        assert settings.get("controller.quorum.bootstrap.servers") == (None if number == 1 else "localhost:9093")


def test_two_brokers_hold_two_copies_and_a_write_needs_one_of_them() -> None:
    settings = make_plan(Request(brokers=2)).settings_of("broker-2")
    assert settings["offsets.topic.replication.factor"] == "2"
    assert settings["min.insync.replicas"] == "1"
    assert "broker.rack" not in settings


def test_other_services_know_every_broker_and_wait_for_all_of_them_once() -> None:
    plan = make_plan(Request(brokers=3))
    everyone = "localhost:9092,localhost:9094,localhost:9096"
    assert plan.settings_of("connect")["bootstrap.servers"] == everyone
    assert plan.settings_of("rest-proxy")["bootstrap.servers"] == everyone
    proxy = next(service for service in plan.services if service.name == "rest-proxy")
    assert plan.needs_of(proxy) == ("broker-1", "broker-2", "broker-3", "registry")
    assert plan.needs_of(proxy, is_restart=True) == ("registry",)


def test_settings_are_for_all_brokers_or_for_one() -> None:
    given = ("broker:num.partitions=3", "broker-2:num.partitions=5", "broker-2:broker.rack=north")
    plan = make_plan(Request(brokers=3, settings=given))
    assert [plan.settings_of(f"broker-{number}")["num.partitions"] for number in (1, 2, 3)] == ["3", "5", "3"]
    assert plan.settings_of("broker-2")["broker.rack"] == "north"


def test_brokers_that_listen_on_every_address_advertise_the_same_host_to_everyone() -> None:
    advertised = [
        make_plan(Request(brokers=3, host="0.0.0.0", insecure=True)).settings_of(f"broker-{number}")[
            "advertised.listeners"
        ]
        for number in (1, 2, 3)
    ]
    assert len({listener.rpartition(":")[0] for listener in advertised}) == 1
    assert "advertised.listeners" not in make_plan(Request(brokers=3)).settings_of("broker-1")


def test_a_folder_keeps_its_number_of_brokers_and_may_get_more(tmp_path: Path) -> None:
    for folder in ("broker", "broker-2", "broker-3"):
        (tmp_path / folder).mkdir()
    assert len(make_plan(Request(data=str(tmp_path))).services) == len(STACK) + 2
    assert "broker-5" in [service.name for service in make_plan(Request(data=str(tmp_path), brokers=5)).services]
    with pytest.raises(Refused, match="data of 3 brokers") as refused:
        make_plan(Request(data=str(tmp_path), brokers=2))
    assert "caudal cluster drain 3" in refused.value.next_steps[1]


def test_brokers_find_each_other_by_the_ports_of_the_last_run(tmp_path: Path) -> None:
    ports = {"broker-1-controller": 41, "broker-2-controller": 42, "broker-3-controller": 43}
    earlier = PlatformState(
        pid=1, started_ms=0, data=str(tmp_path), state="running", services={}, controller_ports=ports
    )
    state.write(earlier)
    plan = make_plan(Request(data=str(tmp_path), brokers=3, ports=("any",)))
    assert plan.controller_ports == ports
    assert plan.ports["broker-1"] == 0
    chosen = make_plan(Request(data=str(tmp_path), brokers=3, ports=("broker-2-controller=99",)))
    assert chosen.controller_ports == {**ports, "broker-2-controller": 99}


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (Request(brokers=0), "must be from 1 to 9"),
        (Request(brokers=10), "must be from 1 to 9"),
        (Request(brokers=3, without=("broker",), bootstrap="kafka:9092"), "contradict each other"),
        (Request(brokers=3, bootstrap="kafka:9092"), "but one is to run here"),
        (Request(brokers=3, ports=("broker=9",)), "nothing called broker listens here"),
        (Request(brokers=3, settings=("broker-4:a=b",)), "no service called broker-4 runs here"),
    ],
)
def test_a_cluster_that_cannot_work_is_refused(request_: Request, expected: str) -> None:
    with pytest.raises(Refused, match=expected):
        make_plan(request_)


# --- secured platforms ---


def test_an_address_that_others_reach_needs_security_or_insistence() -> None:
    for host in ("0.0.0.0", "192.168.1.5", "river.example"):
        with pytest.raises(Refused, match="everyone who reaches this machine") as raised:
            make_plan(Request(host=host))
        assert any("--secure" in step for step in raised.value.next_steps)
        assert make_plan(Request(host=host, secure=True)).security is not None
        assert make_plan(Request(host=host, insecure=True)).security is None


def test_a_folder_that_was_secured_stays_so_unless_one_insists(tmp_path: Path) -> None:
    request = Request(data=str(tmp_path))
    assert make_plan(request).security is None
    SecurityFolder(tmp_path).prepare(certificates=(), users=(), hosts=())
    assert make_plan(request).security is not None
    assert make_plan(Request(data=str(tmp_path), insecure=True)).security is None


@pytest.mark.parametrize(
    "request_",
    [
        Request(secure=True, insecure=True),
        Request(secure=True, without=("broker",), bootstrap="kafka:9092"),
        Request(secure=True, without=("registry",), registry="http://registry:8081"),
    ],
)
def test_what_contradicts_security_is_refused(request_: Request) -> None:
    with pytest.raises(Refused):
        make_plan(request_)


def test_a_secured_platform_has_addresses_with_tls_and_one_more_port_for_each_broker() -> None:
    plan = make_plan(Request(data="/river", secure=True, brokers=2))
    assert plan.endpoint_of("registry") == plan.watch_of("registry") == "https://localhost:8081"
    assert plan.watch_of("broker-2") == "https://localhost:9405"
    assert plan.bootstrap == "localhost:9092,localhost:9094"
    assert plan.certificates_bootstrap == "localhost:9192,localhost:9194"
    assert plan.settings_of("rest-proxy")["schema.registry.url"] == "https://localhost:8081"
