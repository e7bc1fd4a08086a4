"""`caudal quota`: how much users, clients and addresses may send, read and ask for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from deploy.commands import completion
from deploy.commands.options import ClusterOptions, Commands, OptionGroup, Output, OutputOption, YesOption
from deploy.terminal.output import done, examples, note, print_json, table, waiting

if TYPE_CHECKING:
    from core_broker.client.security import Entity, Quota

app = Commands(no_args_is_help=True, help="Quotas of users, clients and addresses: set, list, remove.")

_WHO = "Who"
_LIMITS = "Limits"
DryRunOption = Annotated[bool, typer.Option("--dry-run", "-n", help="Only check, and show what would change.")]


def _who(name: str, help_: str, **more: Any) -> Any:
    return typer.Option(name, help=help_, show_default=False, rich_help_panel=_WHO, **more)


@dataclass(frozen=True, kw_only=True)
class EntityOptions(OptionGroup):
    """Whom a quota is for."""

    user: Annotated[str | None, _who("--user", "A user, by name.", metavar="NAME", autocompletion=completion.users)] = (
        None
    )
    any_user: Annotated[bool, _who("--any-user", "Each user without a quota of its own.")] = False
    client_id: Annotated[str | None, _who("--client-id", "A client id, of the user or of all.", metavar="ID")] = None
    any_client_id: Annotated[bool, _who("--any-client-id", "Each client id without a quota of its own.")] = False
    ip: Annotated[str | None, _who("--ip", "An IP address.", metavar="ADDRESS")] = None
    any_ip: Annotated[bool, _who("--any-ip", "Each address without a quota of its own.")] = False

    def found(self) -> "Entity":
        """The entity in the protocol's words, empty if none was named; raises BadParameter."""
        named = (
            ("user", self.user, self.any_user),
            ("client-id", self.client_id, self.any_client_id),
            ("ip", self.ip, self.any_ip),
        )
        for kind, name, any_ in named:
            if name is not None and (any_ or not name):
                raise typer.BadParameter(f"say either --{kind} NAME or --any-{kind}")
        found = tuple((kind, name) for kind, name, any_ in named if any_ or name is not None)
        if len(found) > 1 and any(kind == "ip" for kind, _ in found):
            raise typer.BadParameter("--ip cannot be combined with --user or --client-id")
        return found

    def required(self) -> "Entity":
        """The entity; raises BadParameter if none was named."""
        if not (found := self.found()):
            raise typer.BadParameter("say whom it is for: --user, --client-id, --ip, or --any-user ...")
        return found


def _limit(name: str, help_: str, **more: Any) -> Any:
    return typer.Option(name, help=help_, show_default=False, rich_help_panel=_LIMITS, **more)


@app.command(
    name="set",
    epilog=examples(
        "caudal quota set --user alice --producer-rate 10MB/s --consumer-rate 20MB/s",
        "caudal quota set --any-user --request-percentage 50",
        "caudal quota set --user shop --client-id import --producer-rate 512KiB/s",
        "caudal quota set --any-ip --connection-rate 10",
    ),
)
def set_(
    cluster: ClusterOptions,
    entity: EntityOptions,
    *,
    producer_rate: Annotated[
        str | None, _limit("--producer-rate", "Written to each broker, such as 10MB/s.", metavar="RATE")
    ] = None,
    consumer_rate: Annotated[
        str | None, _limit("--consumer-rate", "Read from each broker, such as 512KiB/s.", metavar="RATE")
    ] = None,
    request_percentage: Annotated[
        float | None, _limit("--request-percentage", "Time of each broker; 100 is one thread.", min=0.01)
    ] = None,
    controller_mutations: Annotated[
        float | None,
        _limit("--controller-mutations", "Partitions created or deleted, per second.", min=0.01),
    ] = None,
    connection_rate: Annotated[
        int | None, _limit("--connection-rate", "New connections to each broker, per second; for --ip.", min=1)
    ] = None,
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Limit a user, a client id or an address; limits that are not named stay."""
    from core_broker.client.security import Quota
    from deploy.views import quotas as view

    about = entity.required()
    try:
        given = {
            view.PRODUCER: None if producer_rate is None else view.parse_rate(producer_rate),
            view.CONSUMER: None if consumer_rate is None else view.parse_rate(consumer_rate),
            view.REQUESTS: request_percentage,
            view.MUTATIONS: controller_mutations,
            view.CONNECTIONS: connection_rate,
        }
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    limits = {key: float(value) for key, value in given.items() if value is not None}
    if not limits:
        raise typer.BadParameter("say how much: --producer-rate, --consumer-rate, --request-percentage ...")
    security = cluster.admin().security
    with waiting("changing quotas"):
        security.alter_quota(about, put=limits, validate_only=dry_run)
    if output is Output.JSON:
        print_json(view.view(Quota(entity=about, limits=limits)))
        return
    text = f"{view.describe_entity(about)}: {', '.join(view.describe_limits(limits))}"
    (note if dry_run else done)(escape(text))
    if dry_run:
        note("nothing was changed (--dry-run)")


@app.command(name="list", epilog=examples("caudal quota list", "caudal quota list --user alice -o json"))
def list_(cluster: ClusterOptions, entity: EntityOptions, *, output: OutputOption = Output.TABLE) -> None:
    """List the quotas, or those of a user, client id or address."""
    from deploy.views import quotas as view

    wanted = set(entity.found())
    security = cluster.admin().security
    with waiting("asking the cluster"):
        found = [quota for quota in security.quotas() if wanted <= set(quota.entity)]
    if output is Output.JSON:
        print_json([view.view(quota) for quota in found])
    elif found:
        rows = [(view.describe_entity(quota.entity), ", ".join(view.describe_limits(quota.limits))) for quota in found]
        table("", ["Who", "Limits"], rows)
    else:
        note("no quotas; set one:  caudal quota set --user NAME --producer-rate 10MB/s")


@app.command(
    epilog=examples(
        "caudal quota remove --user alice                   all limits of alice",
        "caudal quota remove --any-user --producer-rate     only this one",
    )
)
def remove(
    cluster: ClusterOptions,
    entity: EntityOptions,
    *,
    producer_rate: Annotated[bool, _limit("--producer-rate", "Only this limit.")] = False,
    consumer_rate: Annotated[bool, _limit("--consumer-rate", "Only this limit.")] = False,
    request_percentage: Annotated[bool, _limit("--request-percentage", "Only this limit.")] = False,
    controller_mutations: Annotated[bool, _limit("--controller-mutations", "Only this limit.")] = False,
    connection_rate: Annotated[bool, _limit("--connection-rate", "Only this limit.")] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Remove limits of a user, a client id or an address."""
    from core_broker.client.security import Quota
    from deploy.views import quotas as view

    about = entity.required()
    flags = (producer_rate, consumer_rate, request_percentage, controller_mutations, connection_rate)
    chosen = {key for key, is_named in zip(view.LIMITS, flags, strict=True) if is_named}
    security = cluster.admin().security
    with waiting("asking the cluster"):
        limits = _limits_of(security.quotas(), about)
    limits = {key: value for key, value in limits.items() if not chosen or key in chosen}
    text = f"{view.describe_entity(about)}: {', '.join(view.describe_limits(limits))}"
    if limits and not dry_run:
        if not yes:
            typer.confirm(f"Remove the limits of {text}?", abort=True, err=True)
        with waiting("removing"):
            security.alter_quota(about, put={}, remove=limits)
    if output is Output.JSON:
        print_json(view.view(Quota(entity=about, limits=limits)))
    elif not limits:
        note(f"{escape(view.describe_entity(about))} has no such quota; see all:  caudal quota list")
    elif dry_run:
        note(f"would remove {escape(text)} (--dry-run)")
    else:
        done(f"removed: {escape(text)}")


def _limits_of(quotas: "list[Quota]", entity: "Entity") -> dict[str, float]:
    return next((dict(quota.limits) for quota in quotas if set(quota.entity) == set(entity)), {})
