"""Answers about consumer instances that are no success, by Confluent's codes."""

from typing_extensions import override

from core_broker.client.consumer import Place
from core_broker.client.errors import ClientError
from core_broker.client.group_consumer import AssignmentLost, NoCommittedOffset
from rest_proxy.errors import ProxyError, from_cluster


class ConstraintViolated(ProxyError):
    """A value outside of its bounds: the code begins with 400, and the status is 422 all the same."""

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
    """The instance cannot do this as it is now."""
    return ProxyError(40903, f"Illegal state: {reason}")


def exclusive() -> ProxyError:
    """Topics, a pattern and partitions were mixed."""
    return illegal_state(
        "Subscription to topics, partitions and pattern are mutually exclusive; DELETE the subscription first"
    )


def not_assigned(place: Place) -> ProxyError:
    """A partition that the instance does not read."""
    return illegal_state(f"No current assignment for partition {place[0]}-{place[1]}")


def no_topic_name(topic: str) -> ProxyError:
    """No topic can have this name."""
    return ProxyError(40002, f"Invalid topic {topic[:80]!r}: no topic has such a name; a pattern is a topic_pattern")


def format_mismatch(own: str) -> ProxyError:
    """Records were asked for in another format."""
    return ProxyError(
        40601,
        "The requested embedded data format does not match the deserializer for this consumer instance"
        f" (its format is {own}: accept application/vnd.kafka.{own}.v2+json)",
    )


def from_consumer(error: ClientError, *, address: str) -> ProxyError:
    """What the cluster said to a consumer."""
    match error:
        case AssignmentLost():
            return illegal_state(f"the group has moved, or is moving, the partitions; poll, and try again ({error})")
        case NoCommittedOffset():
            return illegal_state(f"{error}, and auto.offset.reset is none; POST where to begin to …/positions")
        case _:
            return from_cluster(error, address=address)
