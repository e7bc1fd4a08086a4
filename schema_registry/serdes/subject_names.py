"""The subject that a record's schema is registered under, by Confluent's strategies."""

from enum import StrEnum

from schema_registry.serdes.errors import UnusableSchema


class SubjectNameStrategy(StrEnum):
    """Confluent's strategies, by the short names of its REST API."""

    TOPIC_NAME = "TOPIC_NAME"
    """One schema per topic: `orders-value`, `orders-key`."""
    RECORD_NAME = "RECORD_NAME"
    """One schema per record type, in any topic: `shop.Order`."""
    TOPIC_RECORD_NAME = "TOPIC_RECORD_NAME"
    """One schema per record type and topic: `orders-shop.Order`."""

    @classmethod
    def parse(cls, name: str) -> "SubjectNameStrategy":
        """The strategy by the name of Confluent's Java class, with or without its package, or by a short name."""
        short = name.strip().rpartition(".")[2].removesuffix("Strategy")
        found = _NAMES.get(short.replace("_", "").upper().removesuffix("NAME"))
        if found is None:
            known = ", ".join(f"{JAVA_PACKAGE}.{java}" for java in ("TopicNameStrategy", *_OTHER_CLASSES))
            raise ValueError(f"there is no subject name strategy {name!r}; known are {', '.join(cls)}, and {known}")
        return found

    @property
    def needs_record_name(self) -> bool:
        """Whether the subject depends on the schema."""
        return self is not SubjectNameStrategy.TOPIC_NAME

    def subject(self, topic: str, *, is_key: bool = False, record_name: str | None = None) -> str:
        """The subject for a record of a topic; raises UnusableSchema if the schema has no name, but needs one."""
        if self is SubjectNameStrategy.TOPIC_NAME:
            return f"{topic}-key" if is_key else f"{topic}-value"
        if not record_name:
            raise UnusableSchema(f"{self} needs a schema with a name: a record, a message, or a JSON Schema's title")
        return record_name if self is SubjectNameStrategy.RECORD_NAME else f"{topic}-{record_name}"


JAVA_PACKAGE = "io.confluent.kafka.serializers.subject"
_OTHER_CLASSES = ("RecordNameStrategy", "TopicRecordNameStrategy")
_NAMES = {
    "TOPIC": SubjectNameStrategy.TOPIC_NAME,
    "RECORD": SubjectNameStrategy.RECORD_NAME,
    "TOPICRECORD": SubjectNameStrategy.TOPIC_RECORD_NAME,
}
