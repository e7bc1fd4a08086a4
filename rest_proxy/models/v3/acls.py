"""ACLs of API v3: rules about who may do what."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from core_broker.client.access import Operation, PatternType, Permission, ResourceType
from rest_proxy.models.v3.resources import Resource, ResourceCollection

_NAME_MAX = 32_767
"""Longest text that Kafka's protocol can carry in a name."""
BATCH_MAX = 1000
"""Most rules in one request."""


def _in_any_case(words: type[StrEnum]) -> BeforeValidator:
    """Words are taken in small letters, too; what is none stays as it was sent, to be told as such."""

    def read(value: Any) -> Any:
        return value.upper() if isinstance(value, str) and value.upper() in words.__members__ else value

    return BeforeValidator(read)


AnyResourceType = Annotated[ResourceType, _in_any_case(ResourceType)]
AnyPatternType = Annotated[PatternType, _in_any_case(PatternType)]
AnyOperation = Annotated[Operation, _in_any_case(Operation)]
AnyPermission = Annotated[Permission, _in_any_case(Permission)]
Name = Annotated[str, Field(max_length=_NAME_MAX)]

_RULE: dict[str, Any] = {
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}
_URL = "http://localhost:8082/v3/clusters/c-1/acls"
_ONE: dict[str, Any] = {
    "kind": "KafkaAcl",
    "metadata": {
        "self": f"{_URL}?resource_type=TOPIC&resource_name=orders&pattern_type=LITERAL&principal=User%3Aalice"
        "&host=*&operation=READ&permission=ALLOW",
        "resource_name": None,
    },
    "cluster_id": "c-1",
    **_RULE,
}


class CreateAclBody(BaseModel):
    """A rule to be added. Words may be written in small letters, too."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RULE]})

    resource_type: AnyResourceType = Field(description="What it is about; neither ANY nor UNKNOWN.")
    resource_name: Name = Field(description="The name of the resource; `*` is any, `kafka-cluster` is the cluster.")
    pattern_type: AnyPatternType = Field(description="How the name is meant: LITERAL or PREFIXED.")
    principal: Name = Field(description="Whom it is about.")
    host: Name = Field(description="From where; `*` is anywhere.")
    operation: AnyOperation = Field(description="What they may do or not; neither ANY nor UNKNOWN.")
    permission: AnyPermission = Field(description="ALLOW or DENY.")


class CreateAclsBody(BaseModel):
    """Several rules to be added."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"data": [_RULE]}]})

    data: list[CreateAclBody] = Field(max_length=BATCH_MAX, description="The rules.")


class AclData(Resource):
    """A rule."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ONE]})

    kind: str = Field(default="KafkaAcl", description="What this is.")
    cluster_id: str = Field(description="The cluster.")
    resource_type: ResourceType = Field(description="What it is about.")
    resource_name: str = Field(description="The name of the resource.")
    pattern_type: PatternType = Field(description="How the name is meant.")
    principal: str = Field(description="Whom it is about.")
    host: str = Field(description="From where.")
    operation: Operation = Field(description="What they may do or not.")
    permission: Permission = Field(description="Whether they may.")


class AclDataList(ResourceCollection):
    """Rules."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "KafkaAclList",
                    "metadata": {"self": f"{_URL}?resource_type=ANY", "next": None},
                    "data": [_ONE],
                }
            ]
        }
    )

    kind: str = Field(default="KafkaAclList", description="What this is.")
    data: list[AclData] = Field(description="The rules.")


class DeletedAcls(BaseModel):
    """Rules that were removed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"data": [_ONE]}]})

    data: list[AclData] = Field(description="What was removed.")
