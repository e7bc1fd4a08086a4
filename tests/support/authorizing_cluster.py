"""A cluster that has an authorizer and nothing else: it keeps ACLs as Kafka does, so that clients of ours can meet one.

It speaks as little as an admin client needs: ApiVersions, Metadata and the three APIs of ACLs.
"""

import socketserver
import struct
import threading
from typing import Any, Final, Self

from core_broker.errors import ErrorCode
from core_broker.protocol.fields import Message, decode
from core_broker.protocol.frames import encode_response, parse_client_id, unpack_header
from core_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from core_broker.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from core_broker.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from core_broker.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from core_broker.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker

_ANY: Final = 1
_MATCH: Final = 2
_LITERAL: Final = 3
_PREFIXED: Final = 4
_DESCRIBE_BIT: Final = 1 << 8
_APIS: Final = (
    ApiVersionsRequest,
    MetadataRequest,
    DescribeAclsRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
)


class AuthorizingCluster:
    """One broker with an authorizer; leaving it as a context manager stops it."""

    CLUSTER_ID = "authorizing"

    def __init__(self) -> None:
        self.rules: list[AclCreation] = []
        self.may_describe = True
        """Whether its one user may see ACLs."""
        self.may_alter = True
        """Whether its one user may change ACLs."""
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Connection)
        self._server.cluster = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def bootstrap(self) -> str:
        """Where clients find it."""
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def answer(self, request: Message) -> Message:
        """What it says to a request."""
        with self._lock:
            match request:
                case ApiVersionsRequest():
                    versions = [(api.API_KEY or 0, *api.VERSIONS) for api in _APIS]
                    return ApiVersionsResponse(api_keys=[ApiVersion(*one) for one in versions])
                case MetadataRequest():
                    return self._described()
                case DescribeAclsRequest():
                    return self._acls(request)
                case CreateAclsRequest():
                    return CreateAclsResponse(results=[self._created(rule) for rule in request.creations])
                case DeleteAclsRequest():
                    return DeleteAclsResponse(filter_results=[self._deleted(one) for one in request.filters])
                case _:
                    raise AssertionError(f"nobody asks {request} here")

    @property
    def _port(self) -> int:
        return int(self._server.server_address[1])

    def _described(self) -> Message:
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self._port)],
            cluster_id=self.CLUSTER_ID,
            controller_id=1,
            cluster_authorized_operations=_DESCRIBE_BIT if self.may_describe else 0,
        )

    def _acls(self, request: DescribeAclsRequest) -> Message:
        if not self.may_describe:
            return DescribeAclsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="No.")
        found = [rule for rule in self.rules if _is_meant(rule, request)]
        return DescribeAclsResponse(
            resources=[
                DescribeAclsResource(
                    resource_type=rule.resource_type,
                    resource_name=rule.resource_name,
                    pattern_type=rule.resource_pattern_type,
                    acls=[AclDescription(rule.principal, rule.host, rule.operation, rule.permission_type)],
                )
                for rule in found
            ]
        )

    def _created(self, rule: AclCreation) -> AclCreationResult:
        if not self.may_alter:
            return AclCreationResult(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "No.")
        if rule not in self.rules:
            self.rules.append(rule)
        return AclCreationResult(error_message=None)

    def _deleted(self, wanted: DeleteAclsFilter) -> DeleteAclsFilterResult:
        if not self.may_alter:
            return DeleteAclsFilterResult(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "No.")
        gone = [rule for rule in self.rules if _is_meant(rule, wanted)]
        self.rules = [rule for rule in self.rules if rule not in gone]
        return DeleteAclsFilterResult(
            error_message=None,
            matching_acls=[
                DeleteAclsMatchingAcl(
                    error_message=None,
                    resource_type=rule.resource_type,
                    resource_name=rule.resource_name,
                    pattern_type=rule.resource_pattern_type,
                    principal=rule.principal,
                    host=rule.host,
                    operation=rule.operation,
                    permission_type=rule.permission_type,
                )
                for rule in gone
            ],
        )


def _is_meant(rule: AclCreation, wanted: DescribeAclsRequest | DeleteAclsFilter) -> bool:
    return (
        wanted.resource_type_filter in (_ANY, rule.resource_type)
        and _is_named(rule, wanted.resource_name_filter, wanted.pattern_type_filter)
        and wanted.principal_filter in (None, rule.principal)
        and wanted.host_filter in (None, rule.host)
        and wanted.operation in (_ANY, rule.operation)
        and wanted.permission_type in (_ANY, rule.permission_type)
    )


def _is_named(rule: AclCreation, name: str | None, pattern_type: int) -> bool:
    """KIP-290: MATCH finds what applies to a name, by its letters, its beginning, or whatever it is."""
    if pattern_type not in (_ANY, _MATCH, rule.resource_pattern_type):
        return False
    if name is None or name == rule.resource_name:
        return True
    if pattern_type != _MATCH:
        return False
    if rule.resource_pattern_type == _PREFIXED:
        return name.startswith(rule.resource_name)
    return rule.resource_pattern_type == _LITERAL and rule.resource_name == "*"


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    cluster: AuthorizingCluster


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server: Any = self.server
        while len(size := self.rfile.read(4)) == 4:
            frame = self.rfile.read(struct.unpack(">i", size)[0])
            key, version, correlation_id = unpack_header(frame, 0)
            kind = next(api for api in _APIS if key == api.API_KEY)
            version = min(version, kind.VERSIONS[1])
            is_flexible = version >= kind.FLEXIBLE_SINCE
            request = decode(kind, version, frame, parse_client_id(frame, flexible=is_flexible)[1])
            # The header of this one answer is never flexible: who reads it does not know the version yet (KIP-511).
            has_tags = is_flexible and kind is not ApiVersionsRequest
            answer = server.cluster.answer(request)
            self.wfile.write(encode_response(answer, version, correlation_id, flexible_header=has_tags))
