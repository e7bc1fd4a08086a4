"""Variables are the settings' names by the rule of Kafka's and Confluent's images, in both directions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_broker.service.properties import from_environment
from deploy.manifests.environment import variable_of, variables_of
from tests.support.deployment import SETTINGS


@pytest.mark.parametrize(
    "key,variable",
    [
        ("log.dirs", "KAFKA_LOG_DIRS"),
        ("client.sasl.oauthbearer.sub-claim", "KAFKA_CLIENT_SASL_OAUTHBEARER_SUB__CLAIM"),
        ("producer.log_level", "KAFKA_PRODUCER_LOG___LEVEL"),
    ],
)
def test_a_key_becomes_its_variable(key: str, variable: str) -> None:
    assert variable_of("KAFKA_", key) == variable


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["log", "a", "x1"]), st.sampled_from("._-")), max_size=6))
def test_a_variable_becomes_its_key_again(parts: list[tuple[str, str]]) -> None:
    key = "".join(word + sign for word, sign in parts) + "end"
    assert from_environment({variable_of("CONNECT_X_", key): "v"}, "CONNECT_X_") == {key: "v"}


@pytest.mark.parametrize("command", SETTINGS)
def test_every_setting_of_a_service_can_be_given_as_a_variable(command: str) -> None:
    given_ = {key: "v" for key in SETTINGS[command].DEFINITIONS if not key.endswith(".")}
    assert from_environment(variables_of("PREFIX_", given_), "PREFIX_") == given_
