"""The page of all that a policy may read and decide, from the docstrings of what it is given.

``python docs/build_policy_state.py docs/policy_state.md`` writes it; without a file it is printed.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from build_theorems import markdown
from shadowprice.solvers import knowledge as knowledge_module
from shadowprice.solvers.job_columns import JobColumns
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.policy import Decision, Policy
from shadowprice.solvers.state import State

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "policies" / "narrowest_first.py"

INTRODUCTION = """\
# What a policy reads, and what it decides

Made by `make policy-state` from the docstrings of [`solvers/policy.py`](../shadowprice/solvers/policy.py) and
[`solvers/state.py`](../shadowprice/solvers/state.py). Do not edit this page. How to write, run and test a policy
of your own is in [policies](policies.md).

`decide(state)` is called at every decision time: after completions freed their GPUs and arrivals joined the queue.
Jobs are numbers, in order of arrival from 0; what has not arrived is not there. Whatever the policy returns is checked
before anything of it is carried out, and each mistake is one sentence with the policy's name and the time.

## A whole policy

[`{name}`](../{name}):

```python
{text}
```

```console
$ shadowprice generate lognormal --jobs 100 --gpus 64 -o jobs.csv
$ shadowprice simulate jobs.csv --cluster 8x8 --policy {name}:NarrowestFirst
$ shadowprice compare jobs.csv --cluster 8x8 --policies srtf,{name}:NarrowestFirst:patience_s=600
$ shadowprice laws {name}:NarrowestFirst --times patience_s
```
"""


def page() -> str:
    """The whole page, in Markdown."""
    name = EXAMPLE.relative_to(ROOT).as_posix()
    text = EXAMPLE.read_text(encoding="utf-8").strip()
    parts = [
        INTRODUCTION.format(name=name, text=text),
        "## What a policy declares\n",
        _body(inspect.getdoc(Policy)),
        *_members(Policy),
        "\n## Knowledge\n",
        _body(inspect.getdoc(Knowledge)),
        *_values(),
        "\n## State\n",
        _body(inspect.getdoc(State)),
        "### What it holds\n",
        *_attributes(State),
        "\n### What it tells\n",
        *_members(State),
        "\n## Columns of jobs\n",
        _body(inspect.getdoc(JobColumns)),
        *_attributes(JobColumns),
        *_members(JobColumns),
        "\n## Decision\n",
        _body(inspect.getdoc(Decision)),
        "### What it holds\n",
        *_attributes(Decision),
        "\n### What it is written with\n",
        *_members(Decision),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _body(text: str | None) -> str:
    """A docstring before its sections, as Markdown."""
    return markdown(_sections(text or "")[""]) + "\n"


def _sections(text: str) -> dict[str, str]:
    """Sections of a NumPy docstring by title; what is before them under an empty one."""
    found = re.split(r"(?m)^(\w[\w ]*)\n-{3,}\n", text)
    titles = ["", *found[1::2]]
    return {title: body.strip() for title, body in zip(titles, found[::2], strict=True)}


def _entries(section: str) -> Iterator[tuple[str, str]]:
    """Names with types, and descriptions, of a section's entries."""
    for entry in re.split(r"(?m)^(?=\S)", section):
        head, _, body = entry.partition("\n")
        if head:
            yield head.strip(), inspect.cleandoc(body)


def _attributes(owner: type) -> Iterator[str]:
    """A line an attribute, from the docstring of a class."""
    attributes = _sections(inspect.getdoc(owner) or "").get("Attributes", "")
    for head, body in _entries(attributes):
        names, _, kind = head.partition(" : ")
        yield f"- `{names}` ({kind}): {_one_line(body)}"


def _members(owner: type) -> Iterator[str]:
    """Public properties and methods of a class in their order, those of the engine left out."""
    for name, member in vars(owner).items():
        text = inspect.getdoc(member)
        public = not name.startswith("_") or name == "__len__"
        if not public or text is None or text.startswith("Engine:"):
            continue
        if isinstance(member, property):
            yield from _described(f"`{name}`", _returned(member.fget), text)
        elif inspect.isfunction(member):
            yield from _described(f"`{_signature(name, member)}`", _returned(member), text)


def _described(head: str, returned: str, text: str) -> Iterator[str]:
    """Lines of one member: what it is, then its parameters, results and errors."""
    sections = _sections(text)
    yield f"- {head}{returned}: {_one_line(sections[''])}"
    for given, body in _entries(sections.get("Parameters", "")):
        name, _, kind = given.partition(" : ")
        yield f"  - `{name}` ({kind}): {_one_line(body)}"
    for _, body in _entries(sections.get("Returns", "")):
        yield f"  - returns {_one_line(body)}"
    for error, body in _entries(sections.get("Raises", "")):
        told = _one_line(body)
        yield f"  - raises `{error}` {told[:1].lower()}{told[1:]}"


def _signature(name: str, function: Any) -> str:
    given = list(inspect.signature(function).parameters.values())[1:]
    if name == "__len__":
        return "len(...)"
    return f"{name}({', '.join(map(_plain, given))})"


def _plain(parameter: inspect.Parameter) -> str:
    star = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else ""
    default = "" if parameter.default is inspect.Parameter.empty else f"={parameter.default!r}"
    return f"{star}{parameter.name}{default}"


def _returned(function: Any) -> str:
    """Type of what a function returns, without what is in brackets after arrays."""
    kind = str(inspect.signature(function).return_annotation)
    kind = re.sub(r"NDArray\[(?:np\.)?(\w+?)_?\]", r"array of \1", kind)
    return f" ({kind})"


def _values() -> Iterator[str]:
    """Members of the knowledge that can be declared, with the texts after them."""
    tree = ast.parse(inspect.getsource(knowledge_module))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    body = next(node for node in classes if node.name == Knowledge.__name__).body
    for one, after in itertools.pairwise(body):
        if isinstance(one, ast.Assign) and isinstance(after, ast.Expr):
            name = ast.unparse(one.targets[0])
            text = ast.literal_eval(after.value)
            yield f"- `Knowledge.{name}`: {_one_line(text)}"


def _one_line(text: str) -> str:
    """Paragraphs as Markdown on one line."""
    return " ".join(markdown(text).split())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
