"""`caudal schema compatibility`: which schemas may follow which, in one subject or in all of them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from deploy.commands import completion
from deploy.commands.options import Commands, Output, OutputOption, RegistryOptions
from deploy.terminal.output import done, facts, print_json, waiting
from deploy.views.compatibility import MEANINGS

if TYPE_CHECKING:
    from schema_registry.client.registry_client import RegistryClient

app = Commands()

EPILOG = """Examples:

caudal schema compatibility                        (the level of all subjects that have none of their own)

caudal schema compatibility orders-value FULL

caudal schema compatibility orders-value --unset

Levels:

""" + "\n\n".join(f"{level}: {meaning}" for level, meaning in MEANINGS.items())


@app.command(epilog=EPILOG)
def compatibility(
    registry: RegistryOptions,
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="[SUBJECT]",
            help="Name of the subject; without one, all subjects.",
            autocompletion=completion.subjects,
        ),
    ] = None,
    level: Annotated[
        str | None,
        typer.Argument(
            metavar="[LEVEL]",
            help=f"New level: {', '.join(MEANINGS)}.",
            show_default=False,
            autocompletion=completion.levels,
        ),
    ] = None,
    *,
    unset: Annotated[bool, typer.Option("--unset", help="Remove its own level: the general one applies.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show or change which schemas may follow which."""
    if level is None and subject is not None and subject.upper() in MEANINGS:
        subject, level = None, subject
    if level is not None and level.upper() not in MEANINGS:
        raise typer.BadParameter(f"{level!r} is not a level; use one of {', '.join(MEANINGS)}", param_hint="LEVEL")
    if unset and level is not None:
        raise typer.BadParameter("give either a LEVEL or --unset")
    whose = "all subjects" if subject is None else subject
    with registry.client() as client, waiting(f"asking about {whose}"):
        if level is not None:
            client.set_config(subject, {"compatibility": level.upper()})
        elif unset:
            _unset(client, subject)
        own_level = _own_config(client, subject).get("compatibilityLevel")
        now = str(own_level or client.config(subject).get("compatibilityLevel", ""))
    if level is not None:
        done(f"the level of [bold]{escape(whose)}[/] is now {now}")
    elif unset:
        done(f"[bold]{escape(whose)}[/] {'follows the level of all' if subject else 'follow the default'} again")
    meaning = MEANINGS.get(now, "")
    if output is Output.JSON:
        print_json({"subject": subject, "level": now, "inherited": own_level is None, "meaning": meaning})
        return
    pairs = [("level", now), ("meaning", meaning)]
    if subject is not None:
        pairs.append(("set for", "all subjects" if own_level is None else "this subject"))
    facts("All subjects" if subject is None else f"Subject {subject}", pairs)


def _unset(client: "RegistryClient", subject: str | None) -> None:
    """Remove the level, and keep the rest of the config."""
    own = _own_config(client, subject)
    if own.keys() - {"compatibilityLevel"}:
        client.set_config(subject, {"compatibility": None})
    elif own:
        client.delete_config(subject)


def _own_config(client: "RegistryClient", subject: str | None) -> dict[str, Any]:
    from schema_registry.client.errors import SchemaNotFound

    try:
        return client.config(subject, default_to_global=False)
    except SchemaNotFound:
        return {}
