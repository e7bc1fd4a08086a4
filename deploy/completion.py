"""`caudal completion`: the script that teaches a shell to complete the command with Tab.

All three scripts speak the protocol that typer has for fish: the line up to the cursor in a variable, and one line of
answer for each possibility, its help behind a tab.
"""

import sys
from enum import StrEnum
from typing import Annotated, Final

import typer

EPILOG: Final = """Examples:

source <(caudal completion bash)                                     this shell only; in ~/.bashrc for all of them

caudal completion bash > ~/.local/share/bash-completion/completions/caudal     where bash-completion is installed

source <(caudal completion zsh)                                      in ~/.zshrc, after compinit

caudal completion fish > ~/.config/fish/completions/caudal.fish

Then  caudal topic describe <Tab>  offers the topics of the cluster, and so with groups, subjects, connectors, tables
and settings. They are asked for where --bootstrap, --registry, --connect or their variables say, for a second at most;
CAUDAL_COMPLETION_TIMEOUT=3 waits longer for those that are far away."""

_ASK: Final = "env _CAUDAL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args _TYPER_COMPLETE_ARGS="

_BASH: Final = f"""# Completion of caudal for bash.
_caudal_completion() {{
    local line="${{COMP_LINE:0:COMP_POINT}}" word typed reply
    # Bash takes : = @ for the ends of words, too, and puts in only what comes behind the last of them.
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
        # What ends in = is to go on without a space.
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
    """Let the command answer the scripts; typer would do it itself if its own scripts were wanted."""
    from typer.completion import get_completion_inspect_parameters

    get_completion_inspect_parameters()  # what it gives are the options that we leave out; it makes shells known


class Shell(StrEnum):
    """Shells that can be taught."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


SCRIPTS: Final = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="Which shell.", show_default=False)],
) -> None:
    """Print the script with which a shell completes commands, options, and names of topics, groups, connectors ..."""
    sys.stdout.write(SCRIPTS[shell])
