"""The table of APIs agrees with the cards of the handlers, the versions of the messages, and the README."""

import re
import sys
from pathlib import Path

import pytest

import core_broker
from core_broker.handlers.api import Api
from core_broker.handlers.table import BROKER_APIS, CONTROLLER_APIS

_CARD = re.compile(r"(?P<name>\w+), key (?P<key>\d+), versions? (?P<first>\d+)(?:-(?P<last>\d+))?[.:]")

EVERY_API = list({(api.key, api.handler): api for api in (*BROKER_APIS, *CONTROLLER_APIS)}.values())

_MESSAGES_DIFFER = {
    ("Produce", 0): (3, 13),  # 0-2 are advertised for old librdkafka, and rejected
    ("Fetch", 13): (4, 18),  # the metadata log is read by topic id
    ("InitProducerId", 0): (0, 6),  # 6 is for two-phase commit (KIP-939), which is not supported
}


@pytest.mark.parametrize("api", EVERY_API, ids=lambda api: f"{api.name}-{api.first_version}")
def test_the_card_of_a_handler_states_name_key_and_versions_of_the_table(api: Api) -> None:
    handler = api.handler or api.raw_handler
    assert handler is not None
    card = _CARD.match(sys.modules[handler.__module__].__doc__ or "")
    assert card is not None, "the docstring of the handler's module does not begin with `Name, key N, versions A-B`"
    stated = (card["name"], int(card["key"]), int(card["first"]), int(card["last"] or card["first"]))
    assert stated == (api.name, api.key, api.first_version, api.last_version)


@pytest.mark.parametrize("api", EVERY_API, ids=lambda api: f"{api.name}-{api.first_version}")
def test_the_versions_of_the_table_are_those_of_the_messages(api: Api) -> None:
    assert (
        _MESSAGES_DIFFER.get((api.name, api.first_version), (api.first_version, api.last_version))
        == api.request.VERSIONS
    )
    assert api.request.VERSIONS == api.response.VERSIONS
    assert api.request.API_KEY == api.response.API_KEY == api.key


def test_the_readme_lists_every_api_with_its_versions() -> None:
    readme = (Path(core_broker.__file__).parent / "README.md").read_text(encoding="utf-8")
    for title, apis in (("## APIs", BROKER_APIS), ("## APIs between nodes", CONTROLLER_APIS)):
        section = readme.partition(f"{title}\n")[2].partition("\n## ")[0]
        listed = re.findall(r"^\| (\d+) \| (\w+) \| ([\d-]+) \|$", section, re.MULTILINE)
        assert listed == [
            (str(api.key), api.name, "-".join(map(str, dict.fromkeys((api.first_version, api.last_version)))))
            for api in sorted(apis, key=lambda api: api.key)
        ]
