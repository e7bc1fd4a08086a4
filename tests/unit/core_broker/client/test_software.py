import pytest

from core_broker.client.software import Software, software_of

KAFKA_4 = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "transaction.version": (0, 2),
}


@pytest.mark.parametrize("level,release", [(21, "3.9"), (25, "4.0"), (27, "4.1"), (29, "4.2"), (30, "4.3")])
def test_a_release_of_kafka_is_known_by_its_metadata_version(level: int, release: str) -> None:
    assert software_of({**KAFKA_4, "metadata.version": (7, level)}) == Software("Apache Kafka", release)


def test_a_release_of_kafka_that_is_newer_than_this_program_is_not_guessed() -> None:
    assert software_of({**KAFKA_4, "metadata.version": (7, 31)}) == Software("Apache Kafka", "4.4 or later")


def test_a_level_between_two_releases_is_kafka_of_an_unknown_version() -> None:
    assert software_of({**KAFKA_4, "metadata.version": (7, 26)}) == Software("Apache Kafka", None)


def test_our_brokers_tell_their_version() -> None:
    features = {**KAFKA_4, "metadata.version": (7, 30), "caudal.version": (0, 10203)}
    assert software_of(features) == Software("Caudal", "1.2.3")


@pytest.mark.parametrize("own", ["confluent.metadata.version", "automq.version"])
def test_what_is_derived_from_kafka_is_not_called_kafka(own: str) -> None:
    assert software_of({**KAFKA_4, "metadata.version": (7, 25), own: (1, 5)}) == Software("unknown", None)


def test_a_server_without_features_is_unknown() -> None:
    assert software_of({}) == Software("unknown", None)
