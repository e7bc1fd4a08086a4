"""`caudal acl allow|deny|list|remove`: rules about who may do what."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.markup import escape

from core_broker.client.acls import Operation, Permission
from deploy.commands import completion
from deploy.commands.acl import check as check_command
from deploy.commands.acl.places import Place, RulePlaces, ServiceOptions, place_of
from deploy.commands.acl.resources import ResourceOptions
from deploy.commands.options import ClusterOptions, Commands, OptionGroup, Output, OutputOption, YesOption
from deploy.terminal.output import done, examples, note, print_json, table, waiting
from deploy.views import acls as view
from deploy.views.text import plural

app = Commands(no_args_is_help=True, help="Rules about who may do what: allow, deny, list, remove, check.")

_PANEL = "Rule"

PrincipalArgument = Annotated[
    str,
    typer.Argument(
        metavar="PRINCIPAL",
        help="Who: User:alice, or * for everyone. Plain alice is User:alice.",
        show_default=False,
        autocompletion=completion.principals,
    ),
]
OperationsArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[OPERATION,...]",
        help="What: read, write, create, delete, alter, describe, describe-configs, alter-configs, all ...",
        show_default=False,
        autocompletion=completion.operations,
    ),
]
PrincipalFilterArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[PRINCIPAL]",
        help="Only rules for this one, by its name.",
        show_default=False,
        autocompletion=completion.principals,
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", "-n", help="Only show what would change.")]


@dataclass(frozen=True, kw_only=True)
class RuleOptions(OptionGroup):
    """What a new rule says besides who it is for and which resources it is about."""

    producer: Annotated[
        bool,
        typer.Option(
            "--producer",
            help="All that a producer to these topics needs, with its --transactional-id.",
            rich_help_panel=_PANEL,
        ),
    ] = False
    consumer: Annotated[
        bool,
        typer.Option(
            "--consumer", help="All that a consumer of these topics in this --group needs.", rich_help_panel=_PANEL
        ),
    ] = False
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", help="Only from this IP address; * means any.", rich_help_panel=_PANEL
        ),
    ] = view.ANYWHERE


@app.command(
    epilog=examples(
        "caudal acl allow User:alice read,write --topic orders",
        "caudal acl allow User:alice read --topic shop- --prefixed --host 10.0.0.7",
        "caudal acl allow User:billing --consumer --topic orders --group billing",
        "caudal acl allow User:shop --producer --topic orders --transactional-id shop",
        "caudal acl allow User:operator alter,describe --cluster",
        "caudal acl allow User:shop read,write --subject orders- --prefixed",
        "caudal acl allow User:etl all --connector orders-to-sql",
    )
)
def allow(
    cluster: ClusterOptions,
    principal: PrincipalArgument,
    operations: OperationsArgument = None,
    *,
    resources: ResourceOptions,
    rule: RuleOptions,
    services: ServiceOptions,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Allow someone to do something with topics, groups, subjects, connectors or the cluster."""
    from deploy.views.access_checks import read_policy

    new = _rules(principal, operations, resources, rule, permission=Permission.ALLOW)
    places = RulePlaces(cluster, services)
    with waiting("asking for the rules"):
        existing = places.read(_places(new))
        guarded = view.newly_guarded([acl for acl in new if place_of(acl.resource_type) is Place.CLUSTER], existing)
        is_open = read_policy(places.admin).allows_everyone if guarded else False
    if is_open is not False and not dry_run and not yes:
        lets = "this cluster lets everyone" if is_open else "perhaps this cluster lets everyone"
        typer.confirm(
            f"There is no rule for {', '.join(guarded)} yet, and {lets} use what has no rule."
            " With this rule, all others except super users lose access to it. Go on?",
            abort=True,
            err=True,
        )
    _add(places, new, existing, dry_run=dry_run, output=output)


@app.command(
    epilog=examples(
        "caudal acl deny User:alice write --topic orders",
        "caudal acl deny '*' all --topic secrets --host 10.0.0.7",
    )
)
def deny(
    cluster: ClusterOptions,
    principal: PrincipalArgument,
    operations: OperationsArgument = None,
    *,
    resources: ResourceOptions,
    rule: RuleOptions,
    services: ServiceOptions,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Deny something, whatever other rules allow."""
    new = _rules(principal, operations, resources, rule, permission=Permission.DENY)
    places = RulePlaces(cluster, services)
    with waiting("asking for the rules"):
        existing = places.read(_places(new))
    if not dry_run and not yes:
        listed = "; ".join(map(view.sentence, new))
        typer.confirm(
            f"{listed}. No other rule can allow it then, only super users still may. Go on?", abort=True, err=True
        )
    _add(places, new, existing, dry_run=dry_run, output=output)


@app.command(
    name="list",
    epilog=examples(
        "caudal acl list",
        "caudal acl list User:alice",
        "caudal acl list --topic orders      rules of prefixes and of all topics, too",
        "caudal acl list --subject orders-value --registry https://registry:8081",
        "Those of the registry and of Connect are listed, too, if an option, a variable, a profile or a platform that "
        "runs here says where they are.",
    ),
)
def list_(
    cluster: ClusterOptions,
    principal: PrincipalFilterArgument = None,
    *,
    resources: ResourceOptions,
    services: ServiceOptions,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the rules, or those that apply to a topic, group or user."""
    wanted = _principal(principal) if principal else None
    places, about = RulePlaces(cluster, services), resources.found()
    with waiting("asking for the rules"):
        listed = places.affecting(about) if about else places.read_known()
    found = [acl for acl in dict.fromkeys(listed) if wanted in (None, acl.principal)]
    if output is Output.JSON:
        print_json(found)
    elif found:
        _print(found)
    else:
        note("no rules; add one:  caudal acl allow User:NAME read --topic TOPIC")


@app.command(
    epilog=examples(
        "caudal acl remove User:alice write --topic orders",
        "caudal acl remove User:alice --dry-run      all rules for alice",
        "caudal acl remove --topic orders            all rules of the topic",
    )
)
def remove(
    cluster: ClusterOptions,
    principal: PrincipalFilterArgument = None,
    operations: OperationsArgument = None,
    *,
    resources: ResourceOptions,
    services: ServiceOptions,
    permission: Annotated[
        Permission | None,
        typer.Option(
            "--permission", metavar="allow|deny", parser=lambda text: Permission(text.upper()), help="Only such rules."
        ),
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="Only rules for this host.", show_default=False)
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Remove rules: those that have all that is named here, exactly."""
    named = resources.found()
    if principal is None and not named:
        raise typer.BadParameter("say which rules: a principal, or a resource such as --topic NAME")
    wanted = _principal(principal) if principal else None
    places = RulePlaces(cluster, services)
    with waiting("asking for the rules"):
        chosen = [
            acl
            for acl in (places.read({place_of(item.kind) for item in named}) if named else places.read_known())
            if view.selects(
                acl,
                principal=wanted,
                operations=_operations(operations) if operations else (),
                resources=named,
                host=host,
                permission=permission,
            )
        ]
    if chosen and not dry_run:
        if not yes:
            _print(chosen, to_stderr=True)
            typer.confirm(f"Remove {plural(len(chosen), 'rule')}?", abort=True, err=True)
        with waiting("removing"):
            places.remove(chosen)
    if output is Output.JSON:
        print_json(chosen)
    elif dry_run and chosen:
        _print(chosen)
    if dry_run:
        note("nothing was removed (--dry-run)")
    elif chosen:
        done(f"{plural(len(chosen), 'rule')} removed")
    else:
        note("there are no such rules; see all:  caudal acl list")


def _rules(
    principal: str,
    operations: str | None,
    resources: ResourceOptions,
    rule: RuleOptions,
    *,
    permission: Permission,
) -> list[view.AnyAcl]:
    who, about = _principal(principal), resources.found()
    if not about:
        raise typer.BadParameter("say what it is about: --topic, --group, --cluster, --subject, --connector ...")
    if not (operations or rule.producer or rule.consumer):
        raise typer.BadParameter("say which operations, such as read,write; or --producer or --consumer")
    host, found = rule.host, list[view.AnyAcl]()
    try:
        if operations:
            found += view.rules(who, _operations(operations), about, host=host, permission=permission)
        if rule.producer:
            found += view.producer_rules(who, about, host=host, permission=permission)
        if rule.consumer:
            found += view.consumer_rules(who, about, host=host, permission=permission)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return list(dict.fromkeys(found))


def _principal(text: str) -> str:
    try:
        return view.EVERYONE if text == "*" else view.parse_principal(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _operations(text: str) -> tuple[Operation, ...]:
    try:
        return view.parse_operations(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _places(acls: Sequence[view.AnyAcl]) -> set[Place]:
    return {place_of(acl.resource_type) for acl in acls}


def _add(
    places: RulePlaces,
    new: Sequence[view.AnyAcl],
    existing: Sequence[view.AnyAcl],
    *,
    dry_run: bool,
    output: Output,
) -> None:
    if not dry_run:
        with waiting("changing rules"):
            places.add(new)
    if output is Output.JSON:
        print_json(new)
        return
    for acl in new:
        known = " [dim](as before)[/]" if acl in existing else ""
        (note if dry_run else done)(f"{escape(view.sentence(acl))}{known}")
    if dry_run:
        note("nothing was changed (--dry-run)")


def _print(found: Sequence[view.AnyAcl], *, to_stderr: bool = False) -> None:
    if to_stderr:
        for acl in found:
            note(escape(view.sentence(acl)))
        return
    table("", ["Resource", "Principal", "Permission", "Operations", "Host"], view.lines(found))


app.add_typer(check_command.app)
