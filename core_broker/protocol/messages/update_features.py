"""UpdateFeatures (key 57)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, Since, message


class FeatureUpdateKey(Message):
    feature: str = ""
    max_version_level: Int16 = 0
    allow_downgrade: Annotated[bool, Since(0, 0)] = False
    upgrade_type: Annotated[Int8, Since(1)] = 1


@message(57, versions=(0, 2), flexible_since=0)
class UpdateFeaturesRequest(Message):
    timeout_ms: Int32 = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: Annotated[bool, Since(1)] = False


class UpdatableFeatureResult(Message):
    feature: str = ""
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""


@message(57, versions=(0, 2), flexible_since=0)
class UpdateFeaturesResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    results: Annotated[list[UpdatableFeatureResult], Since(0, 1)] = []
