"""Path parameters, as types for the signatures of routes. An invalid value is answered with 404."""

import re
from typing import Annotated

from fastapi import Path
from pydantic import AfterValidator

from core_broker.service.web.paths import Segment
from rest_proxy.admin.cluster import TEXT_BYTES_MAX

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic_name(name: str) -> bool:
    """Whether a topic can have this name; there is no need to ask the cluster for any other."""
    return _TOPIC.fullmatch(name) is not None and name not in (".", "..")


def _check_name(name: str) -> str:
    """Refuse names that the client library truncates (at NUL) or loses its connection over (too long)."""
    if "\0" in name or len(name.encode()) > TEXT_BYTES_MAX:
        raise ValueError("not a valid name")
    return name


Name = Annotated[Segment, AfterValidator(_check_name)]

ClusterId = Annotated[Segment, Path(description="The id of the cluster.", examples=["lkc-4PcEjkzRTm6pKpF5NVxqKw"])]
TopicName = Annotated[Name, Path(description="The name of the topic.", examples=["orders"])]
PartitionId = Annotated[int, Path(description="The number of the partition.", ge=0, le=2**31 - 1, examples=[0])]
BrokerId = Annotated[int, Path(description="The id of the broker.", ge=0, le=2**31 - 1, examples=[1])]
ConfigName = Annotated[Name, Path(description="The name of the config.", examples=["cleanup.policy"])]
BrokerConfigName = Annotated[Name, Path(description="The name of the config.", examples=["log.retention.ms"])]
