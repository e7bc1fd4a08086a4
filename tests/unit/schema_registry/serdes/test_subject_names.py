import pytest
from confluent_kafka.schema_registry import (
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.serialization import MessageField, SerializationContext

from schema_registry.serdes.errors import UnusableSchema
from schema_registry.serdes.subject_names import SubjectNameStrategy


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("io.confluent.kafka.serializers.subject.TopicNameStrategy", SubjectNameStrategy.TOPIC_NAME),
        ("io.confluent.kafka.serializers.subject.RecordNameStrategy", SubjectNameStrategy.RECORD_NAME),
        ("io.confluent.kafka.serializers.subject.TopicRecordNameStrategy", SubjectNameStrategy.TOPIC_RECORD_NAME),
        ("TopicNameStrategy", SubjectNameStrategy.TOPIC_NAME),
        ("TOPIC_NAME", SubjectNameStrategy.TOPIC_NAME),
        ("RECORD_NAME", SubjectNameStrategy.RECORD_NAME),
        ("topic_record_name", SubjectNameStrategy.TOPIC_RECORD_NAME),
        ("TOPIC", SubjectNameStrategy.TOPIC_NAME),
        ("TOPIC_RECORD", SubjectNameStrategy.TOPIC_RECORD_NAME),
        (" record ", SubjectNameStrategy.RECORD_NAME),
    ],
)
def test_strategies_are_known_by_class_and_by_short_name(name: str, strategy: SubjectNameStrategy) -> None:
    assert SubjectNameStrategy.parse(name) is strategy


@pytest.mark.parametrize("name", ["", "Strategy", "com.example.MyStrategy", "TOPICS"])
def test_unknown_strategies_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="known are TOPIC_NAME, RECORD_NAME"):
        SubjectNameStrategy.parse(name)


@pytest.mark.parametrize("is_key", [True, False])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (SubjectNameStrategy.TOPIC_NAME, topic_subject_name_strategy),
        (SubjectNameStrategy.RECORD_NAME, record_subject_name_strategy),
        (SubjectNameStrategy.TOPIC_RECORD_NAME, topic_record_subject_name_strategy),
    ],
)
def test_subjects_are_those_of_confluents_client(ours: SubjectNameStrategy, theirs: object, is_key: bool) -> None:
    assert callable(theirs)
    context = SerializationContext("orders", MessageField.KEY if is_key else MessageField.VALUE)
    assert ours.subject("orders", is_key=is_key, record_name="shop.Order") == theirs(context, "shop.Order")


@pytest.mark.parametrize("strategy", [SubjectNameStrategy.RECORD_NAME, SubjectNameStrategy.TOPIC_RECORD_NAME])
def test_a_schema_without_a_name_has_no_subject_by_name(strategy: SubjectNameStrategy) -> None:
    assert strategy.needs_record_name
    with pytest.raises(UnusableSchema, match="needs a schema with a name"):
        strategy.subject("orders", record_name=None)
