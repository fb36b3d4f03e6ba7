"""longterm --completion: a script that lets bash and zsh complete commands, options and the catalogue's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, get_args, get_type_hints

from longterm.experiments.catalogue import learners, problems

SCRIPT = """\
# Completion of longterm: source it in ~/.bashrc or ~/.zshrc, from longterm --completion of that shell.
_longterm() {
  local current="${COMP_WORDS[COMP_CWORD]}" option="" words="" k
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="%(commands)s"
  else
    case "${COMP_WORDS[1]}" in
%(options)s
    esac
    for ((k = COMP_CWORD - 1; k > 1; k--)); do
      case "${COMP_WORDS[k]}" in --*) option="${COMP_WORDS[k]}"; break ;; esac
    done
    case "$current:$option" in
      -*) ;;
      *:--learners | *:--add) words="%(learners)s" ;;
      *:--problem | *:--problems) words="%(problems)s" ;;
      *) words="" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _longterm longterm
"""

SHELLS = {"bash": "", "zsh": "autoload -U +X compinit bashcompinit && compinit -u && bashcompinit\n"}
"""What each shell needs before the script: zsh, its own completion and that of bash."""


def script(commands: Mapping[str, str], shell: str = "bash") -> str:
    """The script, for commands by name, each with the place (module:class) of its dataclass."""
    lines = []
    for name, place in commands.items():
        module, _, kind = place.partition(":")
        options = " ".join(_options(getattr(import_module(f"longterm.cli.{module}"), kind)))
        lines.append(f'      {name}) words="{options} --help" ;;')
    told = {"commands": " ".join([*commands, "--help", "--version", "--completion"]), "options": "\n".join(lines)}
    return SHELLS[shell] + SCRIPT % (told | {"learners": " ".join(learners()), "problems": " ".join(problems())})


def _options(command: Any) -> Iterator[str]:
    """--name of every field of a command that is an option, and of the groups of options in it."""
    hints = get_type_hints(command, include_extras=True)
    for one in fields(command):
        kind = hints[one.name]
        inner = next((arm for arm in (kind, *get_args(kind)) if isinstance(arm, type) and is_dataclass(arm)), None)
        if inner is not None:
            yield from _options(inner)
        elif "Positional" not in str(kind):
            yield f"--{one.name.replace('_', '-')}"
