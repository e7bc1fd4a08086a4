"""`caudal completion`: scripts that let a shell complete the command with Tab, and the names that they offer.

All three scripts use typer's protocol for fish: the line up to the cursor is in a variable, and the answer has a line
for each candidate, followed by a tab and its help.

Names come from the cluster, registry or worker of the options or the environment of the half-typed command. On a
failure or a time-out nothing is offered: a message would end up in the line being typed.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from deploy.commands import clients
from deploy.stack import STACK
from deploy.terminal.output import examples
from deploy.views.compatibility import MEANINGS

if TYPE_CHECKING:
    from core_broker.client.admin import Admin
    from core_broker.service.settings import Settings

EPILOG: Final = examples(
    "source <(caudal completion bash)                                     this shell only; in ~/.bashrc for all",
    "caudal completion bash > ~/.local/share/bash-completion/completions/caudal     with bash-completion",
    "source <(caudal completion zsh)                                      in ~/.zshrc, after compinit",
    "caudal completion fish > ~/.config/fish/completions/caudal.fish",
    "Then  caudal topic describe <Tab>  offers the topics of the cluster; likewise groups, subjects, connectors, "
    "tables and settings. --bootstrap, --registry, --connect or their variables say which server to ask. Tab waits "
    "at most one second; CAUDAL_COMPLETION_TIMEOUT=3 waits longer for a distant cluster.",
)

_ASK: Final = "env _CAUDAL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args _TYPER_COMPLETE_ARGS="

_BASH: Final = f"""# Completion of caudal for bash.
_caudal_completion() {{
    local line="${{COMP_LINE:0:COMP_POINT}}" word typed reply
    # For bash, words also end at : = @, and it inserts only what follows the last of them.
    word="${{line##*[[:space:]]}}"
    typed="${{word%"${{word##*["$COMP_WORDBREAKS"]}}"}}"
    COMPREPLY=()
    while IFS= read -r reply; do
        reply="${{reply%%$'\\t'*}}"
        if [[ -n $reply ]]; then
            COMPREPLY+=("${{reply#"$typed"}}")
        fi
    done < <({_ASK}"$line" "$1" 2>/dev/null)
    if [[ ${{#COMPREPLY[@]}} -eq 1 && ${{COMPREPLY[0]}} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
}}
complete -o default -F _caudal_completion caudal
"""

_ZSH: Final = f"""#compdef caudal
# Completion of caudal for zsh.
_caudal() {{
    local line
    local -a replies
    for line in "${{(@f)$({_ASK}"${{(j: :)words[1,CURRENT]}}" "${{words[1]}}" 2>/dev/null)}}"; do
        [[ -z $line ]] && continue
        if [[ $line == *$'\\t'* ]]; then
            replies+=("${{${{line%%$'\\t'*}}//:/\\\\:}}:${{line#*$'\\t'}}")
        else
            replies+=("${{line//:/\\\\:}}")
        fi
    done
    if (( $#replies )); then
        # No space after what ends in =.
        if [[ ${{replies[1]}} == *= ]]; then
            _describe caudal replies -S ''
        else
            _describe caudal replies
        fi
    else
        _files
    fi
}}
if [[ $funcstack[1] == _caudal ]]; then
    _caudal "$@"
else
    compdef _caudal caudal
fi
"""

_FISH: Final = f"""# Completion of caudal for fish.
function __caudal_complete
    {_ASK}(commandline -cp | string collect) (commandline -opc)[1] 2>/dev/null
end
complete --command caudal --condition "test -n (__caudal_complete | string collect)" --no-files \\
    --arguments "(__caudal_complete)"
"""


def prepare() -> None:
    """Let the command answer the scripts, which typer does by itself only for its own scripts."""
    from typer.completion import get_completion_inspect_parameters

    get_completion_inspect_parameters()  # called for its side effect: it registers the shells


class Shell(StrEnum):
    """Shells that have a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


SCRIPTS: Final = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="Which shell.", show_default=False)],
) -> None:
    """Print the script with which a shell completes commands, options, and names of topics, groups, connectors ..."""
    sys.stdout.write(SCRIPTS[shell])


# --- names that are offered ---

_TIMEOUT_S: Final = 1.0


def completer(ask: Callable[[Mapping[str, Any], float], Iterable[str]]) -> Callable[[typer.Context, str], list[str]]:
    """A completion function for typer: `ask` gets the command's options and a time-out in seconds."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        seconds = _TIMEOUT_S
        with suppress(KeyError, ValueError):
            seconds = max(0.01, float(os.environ["CAUDAL_COMPLETION_TIMEOUT"]))
        found: list[str] = []

        def run() -> None:
            with suppress(Exception):
                found.extend(ask(context.params, seconds))

        asking = threading.Thread(target=run, daemon=True)
        asking.start()
        asking.join(seconds)
        # Internal topics are offered once their underscore is typed.
        return [name for name in found if incomplete.startswith("_") or not name.startswith("__")]

    return complete


@completer
def topics(given: Mapping[str, Any], seconds: float) -> list[str]:
    """Topics of the cluster."""
    return sorted(_admin(given, seconds).topic_names())


@completer
def groups(given: Mapping[str, Any], seconds: float) -> list[str]:
    """Consumer groups of the cluster."""
    return [group.group_id for group in _admin(given, seconds).groups()]


@completer
def users(given: Mapping[str, Any], seconds: float) -> list[str]:
    """Users of the cluster that have a password."""
    return [user.name for user in _admin(given, seconds).security.users()]


@completer
def principals(given: Mapping[str, Any], seconds: float) -> list[str]:
    """Principals with rules, and users with a password."""
    from core_broker.client.acls import AclFilter

    security = _admin(given, seconds).security
    named = {acl.principal for acl in security.acls(AclFilter())}
    return sorted(named | {f"User:{user.name}" for user in security.users()})


@completer
def subjects(given: Mapping[str, Any], seconds: float) -> list[str]:
    """Subjects of the registry."""
    known = _chosen(given, "registry", "user", "properties", "insecure_http")
    with clients.open_registry(**known, timeout=seconds) as client:
        return client.subjects()


@completer
def connectors(given: Mapping[str, Any], seconds: float) -> list[str]:
    """Connectors of the worker."""
    with clients.open_worker(**_chosen(given, "connect", "properties", "insecure_http"), timeout=seconds) as client:
        return sorted(client.connectors())


@completer
def subjects_for_rules(given: Mapping[str, Any], seconds: float) -> list[str]:
    """Subjects of the registry, for a command about rules."""
    known = _chosen(given, "registry", "insecure_http")
    user = given["registry_user"]
    with clients.open_registry(**known, user=user, properties=None, timeout=seconds) as client:
        return client.subjects()


@completer
def connectors_for_rules(given: Mapping[str, Any], seconds: float) -> list[str]:
    """Connectors of the worker, for a command about rules."""
    known = _chosen(given, "connect", "insecure_http")
    with clients.open_worker(**known, properties=None, timeout=seconds) as client:
        return sorted(client.connectors())


@completer
def plugins(given: Mapping[str, Any], seconds: float) -> list[str]:
    """Connectors that the worker can run, by the last part of their class."""
    with clients.open_worker(**_chosen(given, "connect", "properties", "insecure_http"), timeout=seconds) as client:
        return sorted({str(item["class"]).rpartition(".")[2] for item in client.plugins(connectors_only=True)})


def profiles() -> list[tuple[str, str]]:
    """Profiles of this user, and the client files that they name."""
    from deploy.clients.profiles import ProfileError, read_profiles

    try:
        found = read_profiles(os.environ).profiles
    except ProfileError:
        return []
    return [(name, profile.client_config or profile.bootstrap or "") for name, profile in sorted(found.items())]


def _admin(given: Mapping[str, Any], seconds: float) -> "Admin":
    from core_broker.client.admin import Admin

    return Admin(clients.cluster_settings(**_chosen(given, "bootstrap", "properties"), timeout=seconds))


def _chosen(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The options of a half-typed command that say where something is, and those that all such commands have."""
    return {name: given[name] for name in (*names, "profile", "client_config")}


def services() -> list[tuple[str, str]]:
    """Services of the platform, and what they are for."""
    return [(service.name, service.purpose) for service in STACK]


def logs() -> list[tuple[str, str]]:
    """Everything in a platform that has a log."""
    return [("launcher", "starts, failures, restarts"), *services(), ("spark", "what fills tables from topics")]


def topic_configs(incomplete: str) -> list[str]:
    """Configs of topics, as the beginning of an assignment."""
    return [] if "=" in incomplete else [f"{key}=" for key in topic_config_names()]


def topic_config_names() -> list[str]:
    """Configs of topics."""
    from core_broker.settings import TopicSettings

    return _keys(TopicSettings)


def settings(context: typer.Context, incomplete: str) -> list[str]:
    """Settings of the command's service, as the beginning of an assignment."""
    from deploy.services import SERVICES, settings_type
    from streams.settings import SparkSettings

    command = context.info_name or ""
    chosen = settings_type(command) if command in SERVICES else SparkSettings
    return [] if "=" in incomplete else [f"{key}=" for key in _keys(chosen)]


def operations(incomplete: str) -> list[str]:
    """Operations of rules, after those that are typed already."""
    from core_broker.client.acls import Operation
    from deploy.views.acls import spoken

    typed = incomplete[: incomplete.rfind(",") + 1]
    return [typed + spoken(operation) for operation in list(Operation)[2:]]


def levels() -> list[tuple[str, str]]:
    """Compatibility levels, and what they mean in a few words."""
    return [(level, meaning.partition(";")[0]) for level, meaning in MEANINGS.items()]


def _keys(chosen: "type[Settings]") -> list[str]:
    return sorted(key for key, found in chosen.DEFINITIONS.items() if not (found.is_internal or found.prefix))
