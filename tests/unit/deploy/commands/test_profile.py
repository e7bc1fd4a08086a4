from pathlib import Path

import pytest

from deploy.commands.options import ClusterOptions
from deploy.commands.spark.options import EngineOptions
from tests.support.command import Caudal

FILE = """bootstrap.servers=shop:9093
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password="hush";
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(FILE)
    path.chmod(0o600)
    return path


@pytest.fixture
def caudal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caudal:
    monkeypatch.setenv("CAUDAL_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CAUDAL_DATA", str(tmp_path / "no-platform"))
    for name in ("CAUDAL_PROFILE", "CAUDAL_BOOTSTRAP", "CAUDAL_CLIENT_CONFIG", "CAUDAL_REGISTRY", "CAUDAL_CONNECT"):
        monkeypatch.delenv(name, raising=False)
    return Caudal(monkeypatch)


def test_a_profile_is_added_shown_used_and_removed(caudal: Caudal, file: Path) -> None:
    caudal("profile", "add", "shop", "--client-config", str(file), "--registry", "https://registry:8081")
    assert caudal.json("profile", "show")["profile"] is None
    assert "in use" in caudal("profile", "use", "shop").stderr
    shown = caudal.json("profile", "show")
    assert shown == {
        "profile": "shop",
        "platform": None,
        "bootstrap": "shop:9093",
        "client_config": str(file),
        "security_protocol": "SASL_SSL",
        "principal": "User:ann",
        "registry": "https://registry:8081",
        "rest_proxy": None,
        "connect": None,
        "streams": None,
        "spark": None,
    }
    assert caudal.json("profile", "list")["current"] == "shop"
    assert "hush" not in "".join([*caudal("profile", "show"), *caudal("profile", "list")])
    caudal("profile", "remove", "shop")
    assert caudal.json("profile", "list") == {}
    assert file.exists()


def test_no_profile_is_in_use_any_more_when_that_is_asked_for(caudal: Caudal) -> None:
    caudal("profile", "add", "shop", "--bootstrap", "shop:9092", "--use")
    caudal("profile", "use", "--none")
    assert caudal.json("profile", "show")["bootstrap"] == "localhost:9092"


def test_a_profile_is_not_replaced_by_accident(caudal: Caudal) -> None:
    caudal("profile", "add", "shop", "--bootstrap", "one:9092")
    assert "--replace" in caudal("profile", "add", "shop", "--bootstrap", "two:9092", code=1).stderr
    caudal("profile", "add", "shop", "--bootstrap", "two:9092", "--replace")
    assert caudal.json("profile", "show", "shop")["bootstrap"] == "two:9092"


def test_what_cannot_be_used_is_refused_at_once(caudal: Caudal, tmp_path: Path) -> None:
    assert "cannot be read" in caudal("profile", "add", "x", "--client-config", str(tmp_path / "no"), code=2).stderr
    assert "https://host:port" in caudal("profile", "add", "x", "--registry", "registry:8081", code=2).stderr
    told = caudal("profile", "add", "x", "--connect", "https://ann:hush@host", code=2).stderr
    assert "belong into the client file" in told
    assert "hush" not in told
    assert "say what it names" in caudal("profile", "add", "x", code=2).stderr
    assert "is not a name" in caudal("profile", "add", "a/b", "--bootstrap", "x:1", code=1).stderr


def test_a_client_file_that_others_may_read_is_remarked_on(caudal: Caudal, file: Path) -> None:
    file.chmod(0o644)
    assert f"chmod 600 {file}" in caudal("profile", "add", "shop", "--client-config", str(file)).stderr


def test_an_unknown_profile_is_a_mistake_on_the_command_line(caudal: Caudal) -> None:
    caudal("profile", "add", "shop", "--bootstrap", "shop:9092")
    for words in (("topic", "list"), ("schema", "list"), ("connector", "list"), ("spark", "status")):
        assert "there is no profile 'prod'; there are: shop" in caudal(*words, "--profile", "prod", code=2).stderr
    assert "there is no profile 'prod'" in caudal("profile", "use", "prod", code=1).stderr


def test_options_win_over_the_profile_and_the_profile_over_defaults(caudal: Caudal, file: Path) -> None:
    caudal("profile", "add", "shop", "--client-config", str(file), "--bootstrap", "profile:9092", "--use")
    assert ClusterOptions().unchecked_settings().bootstrap_servers == "profile:9092"
    assert ClusterOptions(client_config=file).unchecked_settings().bootstrap_servers == "shop:9093"
    given = ClusterOptions(bootstrap="given:9092").unchecked_settings()
    assert given.bootstrap_servers == "given:9092"
    assert given.properties["sasl.username"] == "ann"
    caudal("profile", "use", "--none")
    assert ClusterOptions().unchecked_settings().bootstrap_servers == "localhost:9092"


def test_the_profile_names_the_folder_of_spark(caudal: Caudal, tmp_path: Path) -> None:
    caudal("profile", "add", "shop", "--spark", str(tmp_path / "spark"), "--use")
    assert EngineOptions().spark_settings().data_dir == tmp_path / "spark"
    other = EngineOptions(settings=["spark.caudal.data.dir=/other"])
    assert str(other.spark_settings().data_dir) == "/other"
