"""Plugins are listed, explained and used to check configurations over REST."""

import pytest

from tests.support.connect_api import SINK, Api

CLASS = "com.example.QuietSinkConnector"


async def test_connectors_alone_are_listed_unless_all_are_wanted(api: Api) -> None:
    connectors = (await api.get("/connector-plugins")).json()
    assert {"class": CLASS, "type": "sink", "version": "2.5"} in connectors
    assert {plugin["type"] for plugin in connectors} == {"sink", "source"}
    assert (await api.get("/connector-plugins?connectorsOnly=true")).json() == connectors
    everything = (await api.get("/connector-plugins?connectorsOnly=false")).json()
    kinds = ["sink", "source", "transformation", "predicate", "converter", "header_converter"]
    assert list(dict.fromkeys(plugin["type"] for plugin in everything)) == kinds


@pytest.mark.parametrize("name", [CLASS, "QuietSinkConnector", "QuietSink", "net.example.OtherSinkConnector"])
async def test_the_keys_of_a_connector_are_told_by_any_name(api: Api, name: str) -> None:
    keys = (await api.get(f"/connector-plugins/{name}/config")).json()
    assert keys[0] == {
        "name": "file",
        "type": "STRING",
        "required": False,
        "default_value": "",
        "importance": "HIGH",
        "documentation": "Where records go.",
        "group": "File",
        "order": 1,
        "width": "NONE",
        "display_name": "Output file",
        "dependents": [],
    }
    assert "tasks.max" in [key["name"] for key in keys]


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("com.example.Mask$Value", ["fields", "times"]),
        ("Mask%24Value", ["fields", "times"]),
        ("JsonConverter", ["schemas.enable"]),
        ("SimpleHeaderConverter", []),
        ("Always", []),
    ],
)
async def test_the_keys_of_other_plugins_are_their_own(api: Api, name: str, keys: list[str]) -> None:
    body = (await api.get(f"/connector-plugins/{name}/config?version=1.0")).json()
    assert [key["name"] for key in body] == keys


@pytest.mark.parametrize(
    ("path", "included"),
    [
        (CLASS, CLASS),
        ("QuietSink", CLASS),
        ("QuietSinkConnector", "QuietSink"),
        ("net.example.OtherSinkConnector", CLASS),
    ],
)
async def test_a_configuration_is_checked_whatever_the_name(api: Api, path: str, included: str) -> None:
    config = {**SINK, "name": "one", "connector.class": included, "tasks.max": 0}
    answer = await api.put(f"/connector-plugins/{path}/config/validate", json=config)
    assert answer.status_code == 200
    body = answer.json()
    assert (body["name"], body["error_count"], body["groups"][0]) == (included, 1, "Common")
    (wrong,) = (config for config in body["configs"] if config["value"]["errors"])
    assert wrong["value"] == {
        "name": "tasks.max",
        "value": "0",
        "recommended_values": [],
        "errors": ["Invalid value 0 for configuration tasks.max: Value must be at least 1"],
        "visible": True,
    }
    assert wrong["definition"]["name"] == "tasks.max"


async def test_what_is_odd_is_told_beside_the_errors(api: Api) -> None:
    answer = await api.put("/connector-plugins/QuietSink/config/validate", json={**SINK, "name": "a", "flie": "x"})
    assert answer.json()["warnings"] == [{"name": "flie", "message": "unknown configuration; did you mean file?"}]


@pytest.mark.parametrize(
    ("path", "config", "message"),
    [
        ("QuietSink", {"name": "a"}, "Connector config {name} contains no connector type"),
        (
            "QuietSource",
            SINK,
            f"Included connector type {CLASS} does not match request type QuietSource",
        ),
        ("Nope", {"connector.class": "Nope"}, "which name matches Nope, available connectors are"),
    ],
)
async def test_a_configuration_of_something_else_is_refused(
    api: Api, path: str, config: dict[str, str], message: str
) -> None:
    answer = await api.put(f"/connector-plugins/{path}/config/validate", json=config)
    assert (answer.status_code, answer.json()["error_code"]) == (400, 400)
    assert message in answer.json()["message"]
