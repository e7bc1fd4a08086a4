"""FindCoordinator (key 10)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, Since, message


@message(10, versions=(0, 6), flexible_since=3)
class FindCoordinatorRequest(Message):
    key: Annotated[str, Since(0, 3)] = ""
    key_type: Annotated[Int8, Since(1)] = 0
    coordinator_keys: Annotated[list[str], Since(4)] = []


class Coordinator(Message):
    key: Annotated[str, Since(4)] = ""
    node_id: Annotated[Int32, Since(4)] = 0
    host: Annotated[str, Since(4)] = ""
    port: Annotated[Int32, Since(4)] = 0
    error_code: Annotated[Int16, Since(4)] = 0
    error_message: Annotated[str | None, Since(4), NullableSince()] = ""


@message(10, versions=(0, 6), flexible_since=3)
class FindCoordinatorResponse(Message):
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Annotated[Int16, Since(0, 3)] = 0
    error_message: Annotated[str | None, Since(1, 3), NullableSince()] = ""
    node_id: Annotated[Int32, Since(0, 3)] = 0
    host: Annotated[str, Since(0, 3)] = ""
    port: Annotated[Int32, Since(0, 3)] = 0
    coordinators: Annotated[list[Coordinator], Since(4)] = []
