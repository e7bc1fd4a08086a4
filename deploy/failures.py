"""What a user reads when a tool fails: what happened, in one line, and what to do next."""

from core_broker.client.errors import (
    AlreadyExists,
    ClientError,
    Fatal,
    NotAllowed,
    NotFound,
    Rejected,
    Retriable,
    Unreachable,
)


def explain(error: ClientError) -> tuple[str, list[str]]:
    """The line and the next steps for an error of the client."""
    match error:
        case Unreachable():
            return f"No answer from the cluster: {error}", [
                "start a broker here:  [bold]caudal broker[/]",
                "or say where one is:  [bold]--bootstrap host:port[/] (or set CAUDAL_BOOTSTRAP)",
                "if the address is right, see whether advertised.listeners can be reached from here",
            ]
        case NotFound():
            return str(error), ["see what there is:  [bold]caudal topic list[/], [bold]caudal group list[/]"]
        case AlreadyExists():
            return str(error), ["look at it:  [bold]caudal topic describe NAME[/], or add [bold]--if-not-exists[/]"]
        case NotAllowed():
            return str(error), ["give credentials:  [bold]-X sasl.username=... -X sasl.password=...[/]"]
        case Retriable():
            return str(error), ["this passes: try again in a moment"]
        case Fatal() | Rejected():
            return str(error), []
        case _:
            return str(error), []
