"""Errors of consumer instances, with Confluent's codes."""

from typing_extensions import override

from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import ClientError
from core_broker.client.group_consumer import AssignmentLost, NoCommittedOffset
from rest_proxy.errors import ProxyError, from_cluster


class ConstraintViolated(ProxyError):
    """A value out of range: the status is 422 although the code begins with 400, as in Confluent's proxy."""

    @property
    @override
    def status(self) -> int:
        return 422


def not_found(why: str = "") -> ProxyError:
    """There is no such instance."""
    return ProxyError(40403, f"Consumer instance not found.{f' {why}' if why else ''}")


def already_exists() -> ProxyError:
    """The name is taken."""
    return ProxyError(40902, "Consumer with specified consumer ID already exists in the specified consumer group.")


def illegal_state(reason: str) -> ProxyError:
    """The instance cannot do this in its current state."""
    return ProxyError(40903, f"Illegal state: {reason}")


def exclusive() -> ProxyError:
    """Topics, a pattern and partitions were mixed."""
    return illegal_state(
        "Subscription to topics, partitions and pattern are mutually exclusive; DELETE the subscription first"
    )


def not_assigned(place: TopicPartition) -> ProxyError:
    """A partition that the instance does not read."""
    return illegal_state(f"No current assignment for partition {place[0]}-{place[1]}")


def invalid_topic_name(topic: str) -> ProxyError:
    """No topic can have this name."""
    return ProxyError(40002, f"Invalid topic name {topic[:80]!r}; use topic_pattern for a pattern")


def format_mismatch(own: str) -> ProxyError:
    """The client asks for records in another format."""
    return ProxyError(
        40601,
        "The requested embedded data format does not match the deserializer for this consumer instance"
        f" (its format is {own}: accept application/vnd.kafka.{own}.v2+json)",
    )


def from_consumer(error: ClientError, *, address: str) -> ProxyError:
    """Map an error of the Kafka client."""
    match error:
        case AssignmentLost():
            return illegal_state(f"the group is rebalancing, or has just done so; poll and try again ({error})")
        case NoCommittedOffset():
            return illegal_state(f"{error}, and auto.offset.reset is none; POST the offset to begin at to …/positions")
        case _:
            return from_cluster(error, address=address)
