import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.quickstart.addresses import EXAMPLES, Part, PlatformAddresses, relative, shell_quote


def _addresses(data: Path, *, usual: bool = True) -> PlatformAddresses:
    return PlatformAddresses(
        data=data,
        bootstrap="localhost:9092" if usual else "localhost:1",
        registry="http://localhost:8081" if usual else "http://localhost:2",
        proxy="http://localhost:8082",
        connect="http://localhost:8083" if usual else "http://localhost:3",
        streams="http://localhost:8088" if usual else "http://localhost:4",
        spark_data=data / "spark",
        spark_port=15002,
        logs={},
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("part", ["cluster", "registry", "connect", "platform"])
def test_usual_addresses_are_left_out_of_commands(part: Part, here: Path) -> None:
    assert _addresses(here / "caudal-platform").caudal("words", part).endswith("caudal words")


@pytest.mark.parametrize(
    ("part", "option"),
    [
        ("cluster", "--bootstrap localhost:1"),
        ("registry", "--registry http://localhost:2"),
        ("connect", "--connect http://localhost:3"),
        ("platform", "--data elsewhere"),
        ("spark", "--set spark.caudal.data.dir=elsewhere/spark"),
    ],
)
def test_other_addresses_are_options(part: Part, option: str, here: Path) -> None:
    assert _addresses(here / "elsewhere", usual=False).caudal("words", part).endswith(f"caudal words {option}")


def _secured(data: Path) -> PlatformAddresses:
    return replace(_addresses(data, usual=False), client_config=data / "security" / "admin.properties")


@pytest.mark.parametrize("part", ["cluster", "registry", "connect"])
def test_commands_for_a_secured_platform_name_the_client_file_unless_it_is_found(part: Part, here: Path) -> None:
    option = " --client-config elsewhere/security/admin.properties"
    assert _secured(here / "elsewhere").caudal("words", part).endswith(option)
    assert option not in _secured(here / "elsewhere").caudal("words", "platform")
    assert "--client-config" not in _secured(here / "caudal-platform").caudal("words", part)


def test_curl_and_converters_log_in_at_a_secured_platform_by_files(here: Path) -> None:
    addresses = _secured(here / "elsewhere")
    assert addresses.curl == "curl --config elsewhere/security/admin.curl"
    assert set(addresses.registry_login.values()) == {
        str(here / "elsewhere/security/ca.crt"),
        str(here / "elsewhere/security/certificates/connect.pem"),
    }
    assert _addresses(here).curl == "curl"
    assert _addresses(here).registry_login == {}


def test_paths_below_this_folder_are_shown_without_it(here: Path) -> None:
    assert relative(here / "data" / "shop.db") == "data/shop.db"
    assert relative(Path("/elsewhere/shop.db")) == "/elsewhere/shop.db"


@pytest.mark.parametrize("file", sorted(path.name for path in (EXAMPLES / "connectors").iterdir()))
def test_configurations_are_filled_with_the_addresses_of_the_platform(file: str, here: Path) -> None:
    text = (EXAMPLES / "connectors" / file).read_text()
    filled = _addresses(here / "data", usual=False).fill_in(text)

    assert json.loads(filled)["name"] == Path(file).stem
    assert "localhost:8081" not in filled
    assert "caudal-platform" not in filled
    assert (str(here / "data") in filled) == ("caudal-platform" in text)


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_shell_reads_quoted_text_as_it_was(text: str) -> None:
    assert shlex.split(shell_quote(text)) == [text]


def test_sql_is_quoted_as_people_do() -> None:
    assert shell_quote("VALUES ('IS')") == "\"VALUES ('IS')\""
