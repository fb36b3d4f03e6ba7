"""longterm catalogue: the learners and problems that can be named, and every argument of one of them.

longterm --completion: a script that lets bash and zsh complete commands, options and the catalogue's names.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from typing import Any, get_args, get_type_hints

import docstring_parser
import tyro

from longterm.experiments.catalogue import Entry, find_learner, find_problem, in_words, learners, problems, signature


@dataclass(frozen=True)
class CatalogueCommand:
    """The learners and problems that can be named; with names, every argument of these.

    try:
      longterm catalogue
      longterm catalogue aogd mahdavi_ogd
    """

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Learners or problems, by name. Left out: all of them, a line each."""

    def run(self) -> None:
        """Print them."""
        if not self.names:
            groups: dict[str, Mapping[str, Entry]] = {"learners": dict(learners()), "problems": dict(problems())}
            for group, entries in groups.items():
                lines = "\n".join(f"  {signature(entry)}\n      {entry.about}" for entry in entries.values())
                sys.stdout.write(f"{group}\n{lines}\n")
        for name in self.names:
            entry: Entry = find_problem(name) if name in problems() else find_learner(name)
            sys.stdout.write(f"{described(entry)}\n")


def described(entry: Entry) -> str:
    """Every argument with what it may be, its default and what its docstring says of it."""
    hints, said = get_type_hints(entry.build), _said_of_arguments(entry.build)
    lines = [f"{entry.name}: {entry.about}"]
    for name, parameter in entry.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            lines.append(f"  {name}: whatever else the learner takes that it is made of")
            continue
        default = "needed" if parameter.default is parameter.empty else f"left out: {parameter.default!r}"
        lines.append(f"  {name}: {in_words(hints.get(name, Any))} ({default})")
        lines += textwrap.wrap(said.get(name, ""), 110, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def _said_of_arguments(build: Any) -> dict[str, str]:
    parsed = docstring_parser.parse(inspect.getdoc(build) or "", style=docstring_parser.DocstringStyle.NUMPYDOC)
    return {
        name.strip(): " ".join((one.description or "").split())
        for one in parsed.params
        for name in one.arg_name.split(",")
    }


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
