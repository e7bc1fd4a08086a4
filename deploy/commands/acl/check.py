"""`caudal acl check`: which rule decides."""

from typing import Annotated

import typer
from rich.markup import escape

from core_broker.client.acls import AclFilter, Permission
from deploy.commands import completion
from deploy.commands.acl.resources import ResourceOptions
from deploy.commands.options import ClusterOptions, Commands, Output, OutputOption
from deploy.terminal.output import examples, note, out, print_json, waiting
from deploy.views import acls as view

app = Commands()


@app.command(
    epilog=examples(
        "caudal acl check User:alice write --topic orders",
        "caudal acl check User:alice read --topic orders --group billing --host 10.0.0.7",
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
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The client's IP address.")] = "127.0.0.1",
    output: OutputOption = Output.TABLE,
) -> None:
    """Say whether someone may do something, which rule decides that, and why."""
    from core_broker.security.judgement import Judge
    from deploy.views.access_checks import check_access, read_policy

    try:
        who, what = view.parse_principal(principal), view.parse_operations(operations)
        about = resources.found()
        view.rules(who, what, about, host=host, permission=Permission.ALLOW)  # raises for what does not exist
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if not about:
        raise typer.BadParameter("say what it is about: --topic, --group, --transactional-id, --cluster ...")
    client = cluster.admin()
    with waiting("asking the cluster"):
        policy = read_policy(client)
        judge = Judge(
            client.security.acls(AclFilter()),
            super_users=policy.super_users or (),
            allows_everyone=bool(policy.allows_everyone),
        )
    found = check_access(judge, who, what, about, host=host)
    if output is Output.JSON:
        print_json(found)
    else:
        for item in found:
            mark = "[green]✓[/]" if item.allowed else "[bold red]✗[/]"
            out.print(f"{mark} {escape(item.text)}")
        if policy.super_users is None:
            note("the cluster does not show its super users: they may do everything")
        if policy.allows_everyone is None:
            note("it does not show allow.everyone.if.no.acl.found either, which is false if it is not set")
    if not all(item.allowed for item in found):
        raise typer.Exit(1)
