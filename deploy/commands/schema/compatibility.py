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
    wanted = _level(level)
    if unset and wanted is not None:
        raise typer.BadParameter("give either a LEVEL or --unset")
    whose = "all subjects" if subject is None else subject
    client = registry.client()
    with client, waiting(f"asking about {whose}"):
        if wanted is not None:
            client.set_config(subject, {"compatibility": wanted})
        elif unset:
            _unset(client, subject)
        now, is_inherited = _level_now(client, subject)
    if wanted is not None:
        done(f"the level of [bold]{escape(whose)}[/] is now {now}")
    elif unset:
        done(f"[bold]{escape(whose)}[/] {'follows the level of all' if subject else 'follow the default'} again")
    _show(subject, now, output=output, is_inherited=is_inherited)


def _level(text: str | None) -> str | None:
    if text is None:
        return None
    if text.upper() not in MEANINGS:
        raise typer.BadParameter(f"{text!r} is not a level; use one of {', '.join(MEANINGS)}", param_hint="LEVEL")
    return text.upper()


def _level_now(client: "RegistryClient", subject: str | None) -> tuple[str, bool]:
    """The level in force, and whether it comes from elsewhere."""
    own = _own_config(client, subject).get("compatibilityLevel")
    if own is not None:
        return str(own), False
    return str(client.config(subject).get("compatibilityLevel", "")), True


def _own_config(client: "RegistryClient", subject: str | None) -> dict[str, Any]:
    from schema_registry.client.errors import SchemaNotFound

    try:
        return client.config(subject, default_to_global=False)
    except SchemaNotFound:
        return {}


def _unset(client: "RegistryClient", subject: str | None) -> None:
    """Take the level away and nothing else: a config may hold more."""
    own = _own_config(client, subject)
    if own.keys() - {"compatibilityLevel"}:
        client.set_config(subject, {"compatibility": None})
    elif own:
        client.delete_config(subject)


def _show(subject: str | None, level: str, *, output: Output, is_inherited: bool) -> None:
    meaning = MEANINGS.get(level, "")
    if output is Output.JSON:
        print_json({"subject": subject, "level": level, "inherited": is_inherited, "meaning": meaning})
        return
    pairs = [("level", level), ("meaning", meaning)]
    if subject is not None:
        pairs.append(("set for", "all subjects" if is_inherited else "this subject"))
    facts("All subjects" if subject is None else f"Subject {subject}", pairs)
