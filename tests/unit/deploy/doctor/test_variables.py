from pathlib import Path

from deploy.doctor.finding import Context, Finding, Level
from deploy.doctor.variables import variables


def _found(**environment: str) -> list[Finding]:
    return list(variables(Context(environment=environment, data=Path())))


def test_environment_without_ours_is_well() -> None:
    (finding,) = _found(PATH="/usr/bin", KAFKA_HEAP_OPTS="-Xmx1g")
    assert finding.level is Level.OK


def test_variable_with_a_typing_mistake_is_a_problem_that_names_the_right_setting() -> None:
    (finding,) = _found(KAFKA_NUM_PARTITONS="3")
    assert (finding.level, finding.subject) == (Level.PROBLEM, "KAFKA_NUM_PARTITONS")
    assert "did you mean num.partitions?" in finding.found
    assert "unset or correct KAFKA_NUM_PARTITONS" in finding.next_steps[0]


def test_variable_with_a_wrong_value_is_a_problem_that_tells_what_is_allowed() -> None:
    (finding,) = _found(SCHEMA_REGISTRY_LOGGING_LEVEL="LOUD")
    assert finding.level is Level.PROBLEM
    assert "registry would not start: logging.level=LOUD: must be one of DEBUG" in finding.found


def test_variables_that_have_an_effect_are_named_without_their_values() -> None:
    (finding,) = _found(CONNECT_BOOTSTRAP_SERVERS="kafka:9092", CONNECT_GROUP_ID="secret-group")
    assert (finding.level, finding.subject) == (Level.NOTE, "Variables: connect")
    assert "CONNECT_BOOTSTRAP_SERVERS, CONNECT_GROUP_ID" in finding.found
    assert "secret-group" not in finding.found


def test_variables_of_the_rest_proxy_are_not_the_brokers() -> None:
    (finding,) = _found(KAFKA_REST_BOOTSTRAP_SERVERS="kafka:9092")
    assert finding.subject == "Variables: rest-proxy"


def test_one_wrong_variable_does_not_hide_those_that_have_an_effect() -> None:
    wrong, effective = _found(KAFKA_NUM_PARTITIONS="many", KAFKA_LOG_DIRS="/data")
    assert (wrong.level, wrong.subject) == (Level.PROBLEM, "KAFKA_NUM_PARTITIONS")
    assert "KAFKA_LOG_DIRS" in effective.found
    assert "NUM_PARTITIONS" not in effective.found


def test_variable_of_the_tools_that_does_not_exist_is_reported_with_a_similar_one() -> None:
    (finding,) = _found(CAUDAL_BOOTSTRAPS="kafka:9092")
    assert finding.level is Level.WARNING
    assert finding.next_steps == ("did you mean CAUDAL_BOOTSTRAP?",)


def test_password_for_the_registry_is_not_shown() -> None:
    (finding,) = _found(CAUDAL_REGISTRY_USER="me:hidden")
    assert "CAUDAL_REGISTRY_USER" in finding.found
    assert "hidden" not in finding.found


def test_wrong_setting_of_spark_is_a_problem() -> None:
    (finding,) = _found(CAUDAL_SPARK_DRIVER_MEMORY="much")
    assert (finding.level, finding.subject) == (Level.PROBLEM, "CAUDAL_SPARK_DRIVER_MEMORY")
