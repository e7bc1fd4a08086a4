"""ApiVersions, key 18, versions 0-4: the supported APIs and features, computed from the table of handlers.

Supported: a request of a newer version is answered in version 0 with UNSUPPORTED_VERSION (KIP-511), so that any client
can downgrade; the header of the response is never flexible. Produce is advertised from version 0, because old
librdkafka disables compression otherwise (KAFKA-18659). Features whose minimum is 0 are left out of version 3, whose
clients cannot decode them (KAFKA-17011).
"""

import re
from typing import Final

from core_broker.cluster.features import KRAFT_VERSION, SUPPORTED_FEATURES, offered_features
from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import api_versions as wire

_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_SOFTWARE_SINCE: Final = 3
_ZERO_MINIMUM_SINCE: Final = 4


def handle(request: wire.ApiVersionsRequest, context: RequestContext) -> wire.ApiVersionsResponse:
    """List every API with its versions, and the features."""
    if context.api_version >= _SOFTWARE_SINCE and not (
        _SOFTWARE_NAME.fullmatch(request.client_software_name)
        and _SOFTWARE_NAME.fullmatch(request.client_software_version)
    ):
        return wire.ApiVersionsResponse(ErrorCode.INVALID_REQUEST)
    services = context.services
    is_controller = context.listener_name in services.settings.controller_listener_names
    versions = services.controller_api_versions if is_controller else services.api_versions
    response = wire.ApiVersionsResponse(api_keys=[wire.ApiVersion(*entry) for entry in versions])
    if context.api_version >= _SOFTWARE_SINCE:
        hides_zero = context.api_version < _ZERO_MINIMUM_SINCE
        response.supported_features = [
            wire.SupportedFeatureKey(name, first, last)
            for name, (first, last) in offered_features().items()
            if first > 0 or not hides_zero
        ]
        quorum = services.metadata
        finalized = {**quorum.image.features, KRAFT_VERSION: quorum.kraft_version}
        response.finalized_features = [
            wire.FinalizedFeatureKey(name, level, level)
            for name, level in sorted(finalized.items())
            if name in SUPPORTED_FEATURES and level > 0
        ]
        response.finalized_features_epoch = max(quorum.high_watermark - 1, 0)
    return response
