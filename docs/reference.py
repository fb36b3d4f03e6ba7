"""Write the generated pages of the reference: every public name with its methods, and the command line.

`docs/conf.py` calls `write` before each build. The pages go into docs/reference/api; nobody edits them. A page begins
with the purpose, the method and the guarantees, then leads to the guide, the proof and the source.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import longterm
from longterm.cli import COMMANDS, parse
from longterm.learners import Learner

DOCS = Path(__file__).parent
COMPAT = ("multipliers", "onnx", "optax", "river")
NAMESPACES = (
    "calibration.published",
    "lab.arena",
    "problems.constraints",
    "problems.losses",
    "problems.sets",
    "problems.streams",
)
"""Modules inside subpackages whose names are used with the module in front, or imported from it."""
SECTIONS = ("Assumes", "Guarantees", "Needs", "Not promised", "Presets", "Proofs?", "Steps")
"""Words that begin a paragraph in the docstring of an algorithm."""
METHODS = (classmethod, staticmethod, property)
PARTS = {
    "Problems and learners": ("longterm", "problems", "learners", "theory", "hindsight", "play", "testing"),
    "Linear models and intervals": ("linear_model", "calibration", "data"),
    "Money": ("money",),
    "Services": ("storage", "server", "compat"),
    "Experiments": ("lab", "catalogue"),
    "Errors": ("errors",),
}
"""The index of all modules, by what a reader looks for."""
GUIDES = {
    "longterm": "guides/choose",
    "longterm.calibration": "guides/calibration",
    "longterm.catalogue": "guides/problems",
    "longterm.compat": "guides/install",
    "longterm.compat.multipliers": "tutorials/training_loop",
    "longterm.compat.optax": "tutorials/training_loop",
    "longterm.data": "tutorials/sparse_model",
    "longterm.errors": "explanation/faq",
    "longterm.hindsight": "explanation/concepts",
    "longterm.lab": "guides/experiments",
    "longterm.lab.arena": "guides/arena",
    "longterm.learners": "guides/choose",
    "longterm.linear_model": "guides/linear_model",
    "longterm.money": "guides/decisions",
    "longterm.play": "guides/experiments",
    "longterm.problems": "guides/problems",
    "longterm.server": "guides/service",
    "longterm.storage": "explanation/stored_objects",
    "longterm.testing": "tutorials/own_algorithm",
    "longterm.theory": "proofs/theory",
}
"""The page that leads into a module, where no page names the class or function itself."""
READ = ("guides", "tutorials", "explanation")
"""Folders of pages that are linked from a name that they use."""


def modules() -> dict[str, ModuleType]:
    """Return the package and its subpackages that have public names, by dotted name."""
    found = {"longterm": longterm}
    for subpackage in longterm._SUBPACKAGES:
        module = import_module(f"longterm.{subpackage}")
        if subpackage == "compat":  # each of its modules needs an extra
            found |= {one.__name__: one for one in map(import_module, (f"longterm.compat.{name}" for name in COMPAT))}
        else:
            found[module.__name__] = module
    return dict(sorted((found | {f"longterm.{one}": import_module(f"longterm.{one}") for one in NAMESPACES}).items()))


def public_names(module: ModuleType) -> list[str]:
    """Return the names that a module exports."""
    named = getattr(module, "__all__", None)
    if named is not None:
        return sorted(named)
    return sorted(
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == module.__name__
    )


def home_of() -> dict[int, str]:
    """Return the full name under which each object is documented, by identity. Other modules link there."""
    found: dict[int, str] = {}
    for name, module in modules().items():
        if module is not longterm:
            for public in public_names(module):
                found.setdefault(id(getattr(module, public)), f"{name}.{public}")
    return found


def groups_of(module: ModuleType, homes: dict[int, str]) -> dict[str, list[str]]:
    """Return the names that a module documents by the title of their folder, the first line of its docstring."""
    found: dict[str, list[str]] = {}
    for name in public_names(module):
        thing = getattr(module, name)
        if inspect.ismodule(thing) or homes.get(id(thing), f"{module.__name__}.{name}") != f"{module.__name__}.{name}":
            continue
        inside = str(getattr(thing, "__module__", "")).removeprefix(f"{module.__name__}.").split(".")
        folder = sys.modules.get(f"{module.__name__}.{inside[0]}")
        grouped = len(inside) > 1 and folder is not None and bool(folder.__doc__)
        found.setdefault(first_line(folder).partition(": ")[0].rstrip(".") if grouped else "", []).append(name)
    return dict(sorted(found.items()))


def ordered(homes: dict[int, str]) -> list[str]:
    """Return the names of all pages in the order of the index: each module, then its names by group."""
    return [
        page
        for name, module in modules().items()
        for page in (name, *(f"{name}.{one}" for group in groups_of(module, homes).values() for one in group))
    ]


def first_line(thing: Any) -> str:
    """Return the first line of a docstring."""
    return (getattr(thing, "__doc__", None) or "").strip().partition("\n")[0]


def purpose_of(thing: Any) -> str:
    """Return the first paragraph of a docstring, in one line."""
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


def page_of(module: ModuleType, homes: dict[int, str]) -> str:
    """Return the page of a module, in reStructuredText."""
    title = f"``{module.__name__}``"
    lead, _, rest = inspect.cleandoc(module.__doc__ or "").partition("\n\n")
    page = f"{_crumbs()}{title}\n{'=' * len(title)}\n\n{inline(' '.join(lead.split()))}\n"
    sentences = [
        block for block in rest.split("\n\n") if block and not re.search(r"^\w.*\S {2,}\S", block, re.MULTILINE)
    ]
    page += "".join(f"\n{inline(' '.join(block.split()))}\n" for block in sentences)
    page += f"\n{_leads([GUIDES.get(module.__name__) or GUIDES['.'.join(module.__name__.split('.')[:2])]], [])}"
    if module is not longterm:
        page += f"\n.. currentmodule:: {module.__name__}\n"
    inner = [name for name in modules() if name.rpartition(".")[0] == module.__name__ and module is not longterm]
    if inner:
        page += "\n" + "".join(f"- :doc:`{name}`: {inline(first_line(modules()[name]))}\n" for name in inner)
    for group, names in groups_of(module, homes).items():
        page += f"\n{inline(group)}\n{'-' * len(inline(group))}\n" if group else ""
        listed = "".join(f"   {name}\n" for name in names)
        page += f"\n.. autosummary::\n   :nosignatures:\n\n{listed}"
    full = [homes.get(id(getattr(module, name)), "") for name in public_names(module)]
    elsewhere = [home for home in full if home and home.rpartition(".")[0] != module.__name__]
    if elsewhere:
        listed = "".join(f"   ~{home}\n" for home in elsewhere)
        page += f"\nAlso here:\n\n.. autosummary::\n   :nosignatures:\n\n{listed}"
    return page


def entry_of(full: str, thing: Any, homes: dict[int, str]) -> str:
    """Return the page of one public name: purpose, method and guarantees, where to read on, and its signature."""
    module, _, name = full.rpartition(".")
    # No page of a name is in a table of contents: the sidebar of every page would list hundreds.
    page = f":orphan:\n\n{_crumbs(module)}{name}\n{'=' * len(name)}\n\n.. currentmodule:: {module}\n\n"
    documented = callable(thing) and hasattr(thing, "__qualname__")
    if documented:
        page += f"{inline(purpose_of(thing))}\n\n"
    statement = _statement_of(thing, homes)
    page += f"{as_text(statement)}\n\n" if statement else ""
    page += f"{_leads(guides_of(full), proofs_of(name, statement))}\n"
    if not inspect.isclass(thing):
        return f"{page}.. autofunction:: {name}\n" if documented else f"{page}.. autodata:: {name}\n   :no-value:\n"
    own, inherited = members_of(thing, homes)
    page += f".. autoclass:: {name}\n"
    for one in own:
        kind = "autoproperty" if isinstance(inspect.getattr_static(thing, one), property) else "automethod"
        page += f"\n   .. {kind}:: {name}.{one}\n"
    if inherited:
        page += "\n.. rubric:: Inherited\n\n"
        for base, names in inherited.items():
            links = ", ".join(f":py:obj:`~{base}.{one}`" for one in names)
            page += f"From :py:obj:`~{base}`, whose page has the rest: {links}.\n\n"
    return page


def members_of(thing: type, homes: dict[int, str]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the members that a class documents, and those that its public bases define themselves, by base.

    A class documents a public method or property if it, or a private base, defines it with a docstring. An override
    without a docstring is documented by the base. What a public base has from its own private bases stands on its page.
    """
    own: list[str] = []
    inherited: dict[str, list[str]] = {}
    taken: set[str] = set()
    for base in thing.__mro__:
        if not base.__module__.startswith("longterm"):
            continue
        public = [homes[id(one)] for one in thing.__mro__[1:] if id(one) in homes and issubclass(one, base)]
        full = homes.get(id(base), public[0] if public else None) if base is not thing else None
        for name, member in vars(base).items():
            if name.startswith("_") or name in taken or not _has_docstring(member):
                continue
            taken.add(name)
            if full is None:
                own.append(name)
            elif id(base) in homes:
                inherited.setdefault(full, []).append(name)
    return own, inherited


def _has_docstring(member: Any) -> bool:
    if not (inspect.isfunction(member) or isinstance(member, METHODS)):
        return False
    function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    return bool(getattr(function, "__doc__", None)) and str(function.__module__).startswith("longterm")


def _statement_of(thing: Any, homes: dict[int, str]) -> str:
    """Return the docstring of the file that defines a learner, or one public name only, if it has more than a line."""
    source = inspect.getmodule(thing)
    if source is None or source.__name__ in modules() or not source.__doc__:
        return ""
    text = inspect.cleandoc(source.__doc__)
    public = [one for one in vars(source).values() if getattr(one, "__module__", "") == source.__name__]
    alone = sum(id(one) in homes for one in public) == 1
    learner = inspect.isclass(thing) and issubclass(thing, Learner) and bool(thing.name)
    return text if "\n" in text and (alone or learner) else ""


def as_text(text: str) -> str:
    """Return the docstring of a file in reStructuredText: method, needs, guarantees, what is not promised.

    Indented lines are formulas; the rest is prose, in which single backticks mark code.
    """
    parts: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.split("\n")
        while lines:
            formula = lines[0].startswith("    ")
            size = next((n for n, line in enumerate(lines) if line.startswith("    ") != formula), len(lines))
            taken, lines = lines[:size], lines[size:]
            if formula:
                parts.append("::\n\n" + "\n".join(taken))
            else:
                prose = inline("\n".join(taken))
                prose = re.sub(r"(?:``)?docs/((?:proofs|guides)/\w+)\.md(?:``)?", r":doc:`/\1`", prose)
                prose = re.sub(rf"(?<=\n)(?=(?:{'|'.join(SECTIONS)})\b[^.:]*:)", "\n", prose)
                prose = re.sub(r"(?<=[.)]) (?=(?:Proofs?|Not promised): )", "\n\n", prose)
                prose = re.sub(r"(?<=\n)(?=- )", "\n", prose)  # a list, and the paragraph after it
                prose = re.sub(rf"(?m)^((?:{'|'.join(SECTIONS)})\b)(?=[^.:]*:)", r"**\1**", prose)
                parts.append(re.sub(r"(?m)^((?:- |  ).*)\n(?=[^ \n-])", r"\1\n\n", prose))
    return ".. rubric:: Method\n\n" + "\n\n".join(parts)


def inline(line: str) -> str:
    """Return a line of prose as reStructuredText: single backticks mark code, and the rest is no markup."""
    return re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", _escape(line))


def _escape(line: str) -> str:
    """Escape the characters of prose that reStructuredText reads as markup."""
    pieces = re.split(rf"(``[^`]+``|`[^`]+`|\*\*[\w -]+\*\*|{STRESSED})", line)  # code and stressed words stay
    return "".join(one if KEPT.match(one) else re.sub(r"([*|_\\])", r"\\\1", one) for one in pieces)


STRESSED = r"(?<![\w*)\]])\*\w[^*`]*?\w\*(?![\w*])"
"""Words between single asterisks; the asterisk of a decision x* follows a letter."""
KEPT = re.compile(rf"`|\*\*[\w -]+\*\*$|{STRESSED}$")


def _crumbs(module: str = "") -> str:
    links = ":doc:`Reference </reference/index>` › :doc:`Every public name <index>`"
    return f".. container:: crumbs\n\n   {links}{f' › :doc:`{module}`' if module else ''}\n\n"


def _leads(guides: list[str], proofs: list[str]) -> str:
    """Return the line of links to the guides and proofs of a name."""
    found = [
        f"{word}: {', '.join(f':doc:`/{page}`' for page in pages)}"
        for word, pages in (("Guide", guides), ("Proof", proofs))
        if pages
    ]
    return f".. container:: leads\n\n   {' · '.join(found)}\n"


def guides_of(full: str) -> list[str]:
    """Return up to three pages that use a name in their code, the one that uses it most first."""
    module, _, name = full.rpartition(".")
    call = rf"(?<![\w.]){name}\b" if name[0].isupper() else rf"(?<!\w){name}\("
    uses = {page: len(re.findall(call, code)) for page, code in _code_of_pages() if page.split("/")[0] in READ}
    found = sorted((page for page in uses if uses[page]), key=lambda page: (-uses[page], page))[:3]
    while module not in GUIDES:
        module = module.rpartition(".")[0]
    usual = GUIDES[module]
    return sorted(found, key=lambda page: page != usual) or [usual]


def proofs_of(name: str, statement: str) -> list[str]:
    """Return the pages of proofs that a file's docstring names, or else those that name the class."""
    stated = list(dict.fromkeys(re.findall(r"docs/(proofs/\w+)\.md", statement)))
    naming = [page for page, code in _code_of_pages() if page.startswith("proofs/") and re.search(rf"\b{name}\b", code)]
    return stated or ([page for page in naming if page != "proofs/guarantees"][:2] if name[0].isupper() else [])


@cache
def _code_of_pages() -> tuple[tuple[str, str], ...]:
    """Return the code of each written page: its blocks, and what stands between backticks."""
    return tuple(_read_code())


def _read_code() -> Iterator[tuple[str, str]]:
    for folder in (*READ, "proofs"):
        for path in sorted((DOCS / folder).glob("*.md")):
            text = path.read_text(encoding="utf-8")
            blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
            spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
            yield f"{folder}/{path.stem}", "\n".join((*blocks, *spans))


def in_the_site(text: str) -> str:
    """Return a page with its links to sources, which work in a clone, leading to the pages made from them."""
    return SOURCE_LINK.sub(lambda found: f"[{found[1]}](/{_built(found[1], found[2])})", text)


SOURCE_LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)*((?:src/longterm|gallery)/[\w/]+\.\w+)\)")
"""A link to a file that Sphinx makes a page of. Its label tells apart the names of one file."""


def _built(label: str, file: str) -> str:
    if file.startswith("gallery/"):
        return "gallery_pages/index.rst" if "README" in file else f"gallery_pages/{Path(file).stem}.rst"
    pages = {"src/longterm/__init__.py": "index.rst", "src/longterm/cli/__init__.py": "command_line.md"}
    if file in pages:
        return f"reference/api/{pages[file]}"
    module = file.removeprefix("src/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    defined = _defined().get(module) or [module]
    return f"reference/api/{min(defined, key=lambda full: (full.rpartition('.')[2] != label.strip('`'), full))}.rst"


@cache
def _defined() -> dict[str, list[str]]:
    """Return the public names that each module defines."""
    found: dict[str, list[str]] = {}
    homes = home_of()
    for name, module in modules().items():
        for public in public_names(module):
            thing = getattr(module, public)
            if homes.get(id(thing)) == f"{name}.{public}":
                found.setdefault(str(getattr(thing, "__module__", "")), []).append(f"{name}.{public}")
    return found


def signature_of(thing: Any, signature: str | None) -> str | None:
    """Return a signature without the marks of a dataclass: `duals=OneForTheMaximum()` in place of `duals=<factory>`."""
    if signature is None:
        return None
    made = (
        {one.name: one.default_factory for one in dataclasses.fields(thing)} if dataclasses.is_dataclass(thing) else {}
    )
    for name, factory in made.items():
        called = f"{getattr(factory, '__name__', '…')}()" if factory is not dataclasses.MISSING else ""
        signature = signature.replace(f"{name}=<factory>", f"{name}={called}")
    return re.sub(r"<function (\w+)[^>]*>", r"\1", re.sub(r"np\.(True|False)_", r"\1", signature))


def command_line() -> str:
    """Return the page with the help of every command."""
    parts = ["# The command line\n", "What `longterm COMMAND --help` prints, for every command.\n"]
    for name, command in COMMANDS.items():
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
            parse([name, "--help"])
        text = "\n".join(textwrap.fill(line, 88, subsequent_indent=" " * 7) if line.startswith("usage:") else line
                         for line in shown.getvalue().strip().splitlines())  # fmt: skip
        parts.append(f"## longterm {name}\n\n{command.about}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def index() -> str:
    """Return the page that lists every module with the first line of its docstring, by what a reader looks for."""
    page = "Every public name\n=================\n"
    for part, inside in PARTS.items():
        names = [name for name in modules() if name.removeprefix("longterm.").split(".")[0] in inside]
        listed = "".join(f"- :doc:`{name}`: {inline(first_line(modules()[name]))}\n" for name in names)
        page += f"\n{part}\n{'-' * len(part)}\n\n{listed}"
    contents = "\n".join(f"   {name}" for name in modules())
    return f"{page}\n.. toctree::\n   :hidden:\n\n{contents}\n"


def write(folder: Path) -> None:
    """Write the pages that changed and remove those of names that are gone."""
    os.environ.setdefault("COLUMNS", "80")
    folder.mkdir(parents=True, exist_ok=True)
    homes = home_of()
    pages: dict[str, Callable[[], str]] = {"command_line.md": command_line, "index.rst": index}
    for name, module in modules().items():
        pages[f"{name}.rst"] = lambda module=module: page_of(module, homes)  # type: ignore[misc]
        for public in (one for group in groups_of(module, homes).values() for one in group):
            full, thing = f"{name}.{public}", getattr(module, public)
            pages[f"{full}.rst"] = lambda full=full, thing=thing: entry_of(full, thing, homes)  # type: ignore[misc]
    for old in folder.iterdir():
        if old.is_file() and old.name not in pages:
            old.unlink()
    for file, make in pages.items():
        path, text = folder / file, make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
