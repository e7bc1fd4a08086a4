"""UpdateFeatures, key 57, versions 0-2: finalises a feature at a level (KIP-584).

Supported: upgrades to a level this broker supports; downgrades if the client explicitly requests one; validate_only.
Ignored: the time-out.

Versions: 1 upgrade type and validate_only; 2 one result for all features, all or nothing (KIP-1022).
"""

from collections.abc import Sequence
from typing import Final

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import update_features as wire

_UPGRADE: Final = 1
_ALL_OR_NOTHING_SINCE: Final = 2


async def handle(request: wire.UpdateFeaturesRequest, context: RequestContext) -> wire.UpdateFeaturesResponse:
    """Update each feature."""
    if context.api_version >= _ALL_OR_NOTHING_SINCE:
        await _update(request.feature_updates, context, validate_only=request.validate_only)
        return wire.UpdateFeaturesResponse(error_message=None)
    results = []
    for update in request.feature_updates:
        try:
            await _update([update], context, validate_only=request.validate_only)
        except BrokerError as error:
            results.append(wire.UpdatableFeatureResult(update.feature, error.code, error.message))
        else:
            results.append(wire.UpdatableFeatureResult(update.feature, ErrorCode.NONE, None))
    return wire.UpdateFeaturesResponse(error_message=None, results=results)


async def _update(updates: Sequence[wire.FeatureUpdateKey], context: RequestContext, *, validate_only: bool) -> None:
    features = context.services.metadata.image.features
    for update in updates:
        current = features.get(update.feature, 0)
        allows_downgrade = update.allow_downgrade or update.upgrade_type != _UPGRADE
        if update.max_version_level < current and not allows_downgrade:
            raise BrokerError(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"{update.feature}={update.max_version_level}: the feature is finalised at {current}; "
                "request a downgrade to lower the level",
            )
    levels = {update.feature: update.max_version_level for update in updates}
    await context.services.controller.update_features(levels, validate_only=validate_only)
