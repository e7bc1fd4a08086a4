"""`caudal acl check`: which rule decides."""

from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.markup import escape

from core_broker.client.acls import Permission
from deploy.commands import completion
from deploy.commands.acl.places import Place, RulePlaces, ServiceOptions, place_of
from deploy.commands.acl.resources import ResourceOptions
from deploy.commands.options import ClusterOptions, Commands, Output, OutputOption
from deploy.terminal.output import examples, note, out, print_json, waiting
from deploy.views import acls as view

if TYPE_CHECKING:
    from deploy.views.access_checks import Policy

app = Commands()

_TITLES: Final = {Place.REGISTRY: "the registry", Place.CONNECT: "Connect"}


@app.command(
    epilog=examples(
        "caudal acl check User:alice write --topic orders",
        "caudal acl check User:alice read --topic orders --group billing --host 10.0.0.7",
        "caudal acl check User:alice write --subject orders-value",
        "Exit code 0 when all of it is allowed, 1 when not.",
    )
)
def check(
    cluster: ClusterOptions,
    principal: Annotated[
        str,
        typer.Argument(
            metavar="PRINCIPAL",
            help="Who: User:alice; plain alice is User:alice.",
            show_default=False,
            autocompletion=completion.principals,
        ),
    ],
    operations: Annotated[
        str,
        typer.Argument(
            metavar="OPERATION,...",
            help="What, such as read,write.",
            show_default=False,
            autocompletion=completion.operations,
        ),
    ],
    *,
    resources: ResourceOptions,
    services: ServiceOptions,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The client's IP address.")] = "127.0.0.1",
    output: OutputOption = Output.TABLE,
) -> None:
    """Say whether someone may do something, which rule decides that, and why."""
    from core_broker.security.judgement import Judge
    from deploy.views.access_checks import AccessCheck, Policy, check_access, read_policy

    try:
        who, what = view.parse_principal(principal), view.parse_operations(operations)
        about = resources.found()
        view.rules(who, what, about, host=host, permission=Permission.ALLOW)  # raises for what does not exist
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if not about:
        raise typer.BadParameter("say what it is about: --topic, --group, --cluster, --subject, --connector ...")
    places = RulePlaces(cluster, services)
    asked = [place for place in Place if any(place_of(resource.kind) is place for resource in about)]
    found: list[AccessCheck] = []
    policy = Policy(super_users=(), allows_everyone=False)
    with waiting("asking for the rules"):
        for place in asked:
            # A service has settings of its own, which it does not show.
            known = Policy(super_users=(), allows_everyone=False)
            if place is Place.CLUSTER:
                known = policy = read_policy(places.admin)
            judge = Judge(
                places.read({place}),
                super_users=known.super_users or (),
                allows_everyone=bool(known.allows_everyone),
            )
            there = [resource for resource in about if place_of(resource.kind) is place]
            found += check_access(judge, who, what, there, host=host)
    if output is Output.JSON:
        print_json(found)
    else:
        for item in found:
            mark = "[green]✓[/]" if item.allowed else "[bold red]✗[/]"
            out.print(f"{mark} {escape(item.text)}")
        _print_reservations(policy, asked)
    if not all(item.allowed for item in found):
        raise typer.Exit(1)


def _print_reservations(policy: "Policy", asked: list[Place]) -> None:
    """What else may allow something, as far as it is not shown."""
    if policy.super_users is None:
        note("the cluster does not show its super users: they may do everything")
    if policy.allows_everyone is None:
        note("it does not show allow.everyone.if.no.acl.found either, which is false if it is not set")
    for place in asked:
        if place is not Place.CLUSTER:
            note(f"{_TITLES[place]} does not show super.users and allow.everyone.if.no.acl.found, which may allow more")
