"""AlterUserScramCredentials, key 51, version 0: sets and removes the SCRAM credentials of users (KIP-554).

Supported: all of it; one result for each user, sorted by name. Clients send salted passwords, which are as good as
passwords: neither they nor the keys derived from them are ever logged.
Ignored: nothing.
"""

from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)


async def handle(
    request: AlterUserScramCredentialsRequest, context: RequestContext
) -> AlterUserScramCredentialsResponse:
    """Change the credentials."""
    return await context.services.controller.alter_scram_credentials(request)
