"""ACLs in API v3."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from core_broker.client.acls import Operation, PatternType, Permission, ResourceType
from rest_proxy.models.v3.resources import Resource, ResourceCollection

_NAME_MAX = 32_767
"""The longest string in the Kafka protocol."""
BATCH_MAX = 1000
"""Most ACLs in one request."""


def _in_any_case(words: type[StrEnum]) -> BeforeValidator:
    """Accept values in lower case, too; an unknown value stays as it is, for the error message."""

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
    """An ACL to create. Values may be in lower case, too."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RULE]})

    resource_type: AnyResourceType = Field(description="The type of the resource; neither ANY nor UNKNOWN.")
    resource_name: Name = Field(description="The name of the resource; `*` for any, `kafka-cluster` for the cluster.")
    pattern_type: AnyPatternType = Field(description="How the name is matched: LITERAL or PREFIXED.")
    principal: Name = Field(description="The principal.")
    host: Name = Field(description="The client's host; `*` for any.")
    operation: AnyOperation = Field(description="The operation; neither ANY nor UNKNOWN.")
    permission: AnyPermission = Field(description="ALLOW or DENY.")


class CreateAclsBody(BaseModel):
    """Several ACLs to create."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"data": [_RULE]}]})

    data: list[CreateAclBody] = Field(max_length=BATCH_MAX, description="The ACLs.")


class AclData(Resource):
    """An ACL."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ONE]})

    kind: str = Field(default="KafkaAcl", description="The kind of this object.")
    cluster_id: str = Field(description="The cluster.")
    resource_type: ResourceType = Field(description="The type of the resource.")
    resource_name: str = Field(description="The name of the resource.")
    pattern_type: PatternType = Field(description="How the name is matched.")
    principal: str = Field(description="The principal.")
    host: str = Field(description="The client's host.")
    operation: Operation = Field(description="The operation.")
    permission: Permission = Field(description="Whether the operation is allowed or denied.")


class AclDataList(ResourceCollection):
    """ACLs."""

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

    kind: str = Field(default="KafkaAclList", description="The kind of this object.")
    data: list[AclData] = Field(description="The ACLs.")


class DeletedAcls(BaseModel):
    """ACLs that were deleted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"data": [_ONE]}]})

    data: list[AclData] = Field(description="The deleted ACLs.")
