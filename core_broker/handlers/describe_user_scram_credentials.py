"""DescribeUserScramCredentials, key 50, version 0: the mechanisms and iterations of users' credentials (KIP-554).

Supported: all of it; without names, all users. Salts and keys are never returned.
Ignored: nothing.
"""

from collections import Counter

from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from core_broker.security.credentials import ScramCredentials


def handle(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """Describe each user; one that is named twice gets an error."""
    credentials = context.services.credentials
    asked = Counter(user.name for user in request.users or ()) or dict.fromkeys(sorted(credentials.names()), 1)
    return DescribeUserScramCredentialsResponse(
        error_message=None, results=[_describe(name, count, credentials) for name, count in asked.items()]
    )


def _describe(name: str, count: int, credentials: ScramCredentials) -> DescribeUserScramCredentialsResult:
    if count > 1:
        text = "a user may be named only once in a request"
        return DescribeUserScramCredentialsResult(name, ErrorCode.DUPLICATE_RESOURCE, text)
    iterations = credentials.iterations_of(name)
    if not iterations:
        text = "the user has no SCRAM credentials"
        return DescribeUserScramCredentialsResult(name, ErrorCode.RESOURCE_NOT_FOUND, text)
    infos = [CredentialInfo(mechanism, count) for mechanism, count in iterations.items()]
    return DescribeUserScramCredentialsResult(name, ErrorCode.NONE, None, infos)
