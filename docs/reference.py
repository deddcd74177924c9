"""Write docstrings as Markdown, with the signatures of classes, functions and values.

``docs/generated.py`` puts them into the pages. On the site, Sphinx fills the pages of ``docs/api``
from the same docstrings instead (``docs/conf.py``).
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from itertools import pairwise, takewhile
from pathlib import Path
from textwrap import dedent
from typing import Any

WIDTH = 96
SECTIONS = {
    "Args": "Arguments",
    "Attributes": "Attributes",
    "Raises": "Raises",
    "Returns": "Returns",
    "Yields": "Yields",
}
"""The headings that a docstring may have (Google's), each with the heading on the page."""


def markdown(text: str) -> str:
    """Return a docstring as Markdown: its sections, examples, blocks, tables and names of code."""
    parts = re.split(rf"^({'|'.join(SECTIONS)}):\n", text, flags=re.MULTILINE)
    result = _prose(parts[0])
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        lines = body.split("\n")
        indented = [*takewhile(lambda line: not line or line.startswith("    "), lines)]
        inside, after = dedent("\n".join(indented)).strip(), "\n".join(lines[len(indented) :])
        if title not in ("Returns", "Yields"):
            inside = re.sub(r"^(\*{0,2}\w[\w., *]*):", r"* ``\1``:", inside, flags=re.MULTILINE)
            inside = re.sub(r"\n {4}", "\n  ", inside)
        result += f"\n\n**{SECTIONS[title]}**\n\n{_prose(inside)}"
        result += f"\n\n{_prose(after)}" if after.strip() else ""
    return result


def _prose(text: str) -> str:
    """Return reStructuredText as Markdown."""
    text = re.sub(
        r"::\n\n((?: {4}.*\n|\n)+)",
        lambda match: f":\n\n```text\n{dedent(match[1]).strip()}\n```\n\n",
        text + "\n",
    )
    text = re.sub(r"^(=+ +=[= ]*\n(?:.+\n)+)", r"```text\n\1```\n", text, flags=re.MULTILINE)
    text = re.sub(r"((?:^[ ]*(?:>>>|\.\.\.) .*\n(?:.+\n)*)+)", _example, text, flags=re.MULTILINE)
    text = re.sub(r":(?!mod)\w+:`~(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return re.sub(r"(?<!`)``(?!`)", "`", text).strip()


def _example(match: re.Match[str]) -> str:
    """Return the lines of an example as a block of code."""
    return f"```python\n{dedent(match[1])}\n```\n"


def module_docstring(file: Path) -> str:
    """Return the docstring of a file as Markdown, without importing it.

    A paragraph's bold first words, such as ``**Rewards.**``, become a heading to link to.
    """
    text = markdown(ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "")
    return re.sub(r"^\*\*([\w ]+)\.\*\* ", r"### \1\n\n", text, flags=re.MULTILINE)


def describe(kind: str, name: str, *options: str) -> str:
    """Return the reference of a public name as Markdown.

    Args:
        kind: ``class``, ``function``, ``data`` or ``module``, as in Sphinx' directives.
        name: the name with its package, as users import it.
        options: the options of the directive; only ``inherited-members`` has an effect here.
    """
    if kind == "module":
        module = importlib.import_module(name)
        return f"## {name}\n\n{markdown(inspect.getdoc(module) or '')}"
    package, _, short = name.rpartition(".")
    value = getattr(importlib.import_module(package), short)
    heading = f"## {short}"
    if kind == "data":
        words = _value_docstring(package, short)
        return f"{heading}\n\n" + (f"`{name}`: {words}" if words else f"`{name} = {value!r}`")
    node = _node(value)
    if isinstance(node, ast.FunctionDef):
        return "\n\n".join([heading, _signature(name, node), _docstring(node)])
    inherited = any(option.startswith("inherited-members") for option in options)
    return "\n\n".join([heading, *_class_parts(name, value, inherited)])


def _node(value: Any) -> ast.stmt:
    """Return the definition of a function or a class."""
    [node] = ast.parse(dedent(inspect.getsource(value))).body
    return node


def _class_parts(name: str, described: type, inherited: bool) -> list[str]:
    """Return the signature, the docstring and the members of a class.

    Args:
        name: the name with its package.
        described: the class.
        inherited: whether to describe the members of its ancestors in this project too.
    """
    node = _node(described)
    assert isinstance(node, ast.ClassDef)
    methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
    begin = methods.get("__init__")
    signature = _signature(f"class {name}", begin) if begin else f"```python\nclass {name}\n```"
    members: dict[str, str] = {}
    for owner in described.__mro__ if inherited else [described]:
        if owner.__module__.startswith("bao_"):
            body = _node(owner)
            assert isinstance(body, ast.ClassDef)
            for member, text in _members(body):
                members.setdefault(member, text)
    return [signature, markdown(ast.get_docstring(node) or ""), *members.values()]


def _members(owner: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield the public members of a class that have a docstring: the name, and its Markdown."""
    for part, following in pairwise([*owner.body, ast.Pass()]):
        if isinstance(part, ast.FunctionDef):
            if part.name.startswith("_") or ast.get_docstring(part) is None:
                continue
            decorators = {ast.unparse(decorator) for decorator in part.decorator_list}
            if any(decorator.endswith((".setter", "overload")) for decorator in decorators):
                continue
            if any("property" in decorator for decorator in decorators):
                yield part.name, f"**`{part.name}`**: {_docstring(part)}"
            else:
                heading = f"**`{part.name}`**"
                yield part.name, f"{heading}\n\n{_signature(part.name, part)}\n\n{_docstring(part)}"
        elif isinstance(part, ast.AnnAssign | ast.Assign) and isinstance(following, ast.Expr):
            target = part.target if isinstance(part, ast.AnnAssign) else part.targets[0]
            text = following.value
            if isinstance(text, ast.Constant) and isinstance(target, ast.Name):
                default = f" = {ast.unparse(part.value)}" if part.value else ""
                if not target.id.startswith("_"):
                    yield target.id, f"**`{target.id}{default}`**: {markdown(_clean(text.value))}"


def _docstring(function: ast.FunctionDef) -> str:
    """Return the docstring of a function as Markdown."""
    return markdown(ast.get_docstring(function) or "")


def _clean(text: object) -> str:
    """Return the text of a docstring below an attribute."""
    return inspect.cleandoc(str(text))


def _signature(name: str, function: ast.FunctionDef) -> str:
    """Return a function's arguments and result as a block of code."""
    arguments = _arguments(function.args)
    if arguments[:1] in (["self"], ["cls"]):
        del arguments[0]
    result = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    if name.startswith("class "):
        result = ""
    line = f"{name}({', '.join(arguments)}){result}"
    if len(line) > WIDTH:
        lines = "".join(f"    {argument},\n" for argument in arguments)
        line = f"{name}(\n{lines}){result}"
    return f"```python\n{line}\n```"


def _arguments(arguments: ast.arguments) -> list[str]:
    """Return the arguments of a function as they are written in the code."""

    def text(argument: ast.arg, default: ast.expr | None = None) -> str:
        words = ast.unparse(argument)
        if default is None:
            return words
        return (
            f"{words} = {ast.unparse(default)}"
            if argument.annotation
            else f"{words}={ast.unparse(default)}"
        )

    ordinary = [*arguments.posonlyargs, *arguments.args]
    required = len(ordinary) - len(arguments.defaults)
    words = [text(argument) for argument in ordinary[:required]]
    words += map(text, ordinary[required:], arguments.defaults)
    if arguments.vararg:
        words.append(f"*{text(arguments.vararg)}")
    elif arguments.kwonlyargs:
        words.append("*")
    words += map(text, arguments.kwonlyargs, arguments.kw_defaults)
    if arguments.kwarg:
        words.append(f"**{text(arguments.kwarg)}")
    return words


def _value_docstring(package: str, name: str) -> str:
    """Return the docstring below a value, in the module that defines it."""
    module = importlib.import_module(package)
    tree = ast.parse(inspect.getsource(module))
    for part, following in pairwise(tree.body):
        targets = [part.target] if isinstance(part, ast.AnnAssign) else getattr(part, "targets", [])
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                return markdown(_clean(following.value.value))
            return ""
        if isinstance(part, ast.ImportFrom) and name in {alias.name for alias in part.names}:
            return _value_docstring(str(part.module), name)
    raise ValueError(f"{package} does not define {name}")
