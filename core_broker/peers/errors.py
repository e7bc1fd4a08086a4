"""Errors of requests to other nodes. Each may be tried again; what differs is what has to happen before that.

PeerError                     the request got no usable response
├── PeerRefusedError          no process listens at the address: the node has ended
└── PeerAuthenticationError   an operator must change a setting, a certificate or a password, of this node or the other
"""


class PeerError(Exception):
    """A request got no usable response: connection refused or lost, time-out, unsupported version, invalid response."""


class PeerRefusedError(PeerError):
    """The connection was refused: the machine is there, but no process listens at the address."""


class PeerAuthenticationError(PeerError):
    """One of both nodes does not accept who the other one is; the text names the settings to look at."""
