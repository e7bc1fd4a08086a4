"""ListTransactions, key 66, versions 0-2.

The transactional ids that this broker coordinates (KIP-664), filtered by state and producer id, by how long they have
been running (version 1, KIP-994), and by a regular expression that must match the whole id (version 2, KIP-1152). The
expression is matched in linear time, so that no expression can keep the broker busy.
"""

from collections.abc import Callable

import re2

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import may_use_transactions
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from core_broker.transactions import transaction as machine
from core_broker.transactions.transaction import PREPARED, Transaction

_LABELS = frozenset(state.label for state in machine.TransactionState)
_RUNNING = PREPARED | {machine.TransactionState.ONGOING}


def handle(request: ListTransactionsRequest, context: RequestContext) -> ListTransactionsResponse:
    """List the transactions that match the filters."""
    unknown = [state for state in request.state_filters if state not in _LABELS]
    try:
        is_wanted = _filter(request, context.services.clock.now_ms())
        matching = [current for current in context.services.transactions.transactions() if is_wanted(current)]
    except BrokerError as error:
        return ListTransactionsResponse(error_code=error.code)
    may_describe = may_use_transactions(context)
    found = [current for current in matching if may_describe(current.transactional_id)]
    return ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=[
            TransactionState(current.transactional_id, current.producer_id, current.state.label) for current in found
        ],
    )


def _filter(request: ListTransactionsRequest, now_ms: int) -> Callable[[Transaction], bool]:
    states = frozenset(request.state_filters)
    producer_ids = frozenset(request.producer_id_filters)
    duration_ms = request.duration_filter
    matches = _matcher(request.transactional_id_pattern)

    def is_wanted(current: Transaction) -> bool:
        return (
            (not states or current.state.label in states)
            and (not producer_ids or current.producer_id in producer_ids)
            and (duration_ms < 0 or (current.state in _RUNNING and now_ms - current.start_ms > duration_ms))
            and matches(current.transactional_id)
        )

    return is_wanted


def _matcher(pattern: str | None) -> Callable[[str], bool]:
    if not pattern:
        return lambda _: True
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise BrokerError(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"transactional id pattern {pattern!r} is not valid: {error}"
        ) from error
    return lambda transactional_id: compiled.fullmatch(transactional_id) is not None
