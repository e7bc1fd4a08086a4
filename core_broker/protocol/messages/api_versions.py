"""ApiVersions (key 18)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, Since, Tag, message


@message(18, versions=(0, 4), flexible_since=3)
class ApiVersionsRequest(Message):
    client_software_name: Annotated[str, Since(3)] = ""
    client_software_version: Annotated[str, Since(3)] = ""


class ApiVersion(Message):
    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


class SupportedFeatureKey(Message):
    name: Annotated[str, Since(3)] = ""
    min_version: Annotated[Int16, Since(3)] = 0
    max_version: Annotated[Int16, Since(3)] = 0


class FinalizedFeatureKey(Message):
    name: Annotated[str, Since(3)] = ""
    max_version_level: Annotated[Int16, Since(3)] = 0
    min_version_level: Annotated[Int16, Since(3)] = 0


@message(18, versions=(0, 4), flexible_since=3)
class ApiVersionsResponse(Message):
    error_code: Int16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    supported_features: Annotated[list[SupportedFeatureKey], Since(3), Tag(0)] = []
    finalized_features_epoch: Annotated[Int64, Since(3), Tag(1)] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], Since(3), Tag(2)] = []
    zk_migration_ready: Annotated[bool, Since(3), Tag(3)] = False
