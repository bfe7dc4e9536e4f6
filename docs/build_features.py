"""The page of features: what an instance may say, what does not go together and why, and who knows what.

``python docs/build_features.py docs/features.md benchmarks/records/readers.md`` writes the page and the record of who
knows what; without a file the page is printed.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import shadowprice
from shadowprice.instances import features
from shadowprice.instances.features import APART, Feature

PACKAGE = Path(shadowprice.__file__).parent

INTRODUCTION = """\
# Features

Made by `make features` from [`instances/features.py`](../shadowprice/instances/features.py) and from the constants
`KNOWS` of those who read instances. Do not edit this page.

A **feature** is one thing that an instance may say beyond nodes and jobs; `instance.features` is the set of those that
it has. **Closed by default**: whoever reads an instance says in a constant `KNOWS` which features it understands, and
refuses an instance that has another, in one sentence that names it. What nobody thought of is not bounded, approved or
claimed. [Who knows what](../benchmarks/records/readers.md) is a record.

```python
>>> import shadowprice as sp
>>> jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=1, work=[4, 2], gpu_milli=[400, 1000])
>>> instance = sp.Instance(sp.Cluster.parse("1x2"), jobs)
>>> [str(feature) for feature in instance.features]
['parts']
>>> from shadowprice.proofs.lower_bounds import fluid
>>> fluid.bound(instance)
Traceback (most recent call last):
shadowprice.errors.InputError: workload: has jobs that hold a part of a GPU (as '0'), not known to {reader}
```
"""

READERS = """\
# Who knows which features

Made by `make features`. Do not edit this page. [What features are](../../docs/features.md). The compiled loop leaves
what it does not know to the engine, the compiled pass and the segments to the verifier; all others refuse it.
`tests/test_closed_by_default.py` has each read an instance with each feature. What a theorem knows is in the
[list of theorems](../../docs/theorems.md).

| reader | knows |
|---|---|"""


def page() -> str:
    """The page, in Markdown."""
    return "\n".join([INTRODUCTION.replace("{reader}", "LB-fluid"), *_features(), *_pairs(), ""])


def record() -> str:
    """The record of who knows what, in Markdown."""
    return "\n".join([READERS, *_readers(), ""])


def _features() -> Iterator[str]:
    yield "## What an instance may say\n\n| feature | meaning |\n|---|---|"
    for each in Feature:
        yield f"| `{each}` | {each.sentence} |"


def _pairs() -> Iterator[str]:
    """A row a reason, with the pairs that it is of, in the order of features."""
    yield "\n## What does not go together\n\n| pairs | why |\n|---|---|"
    order = list(Feature)
    pairs = {tuple(sorted(pair, key=order.index)): reason for pair, reason in APART.items()}
    reasons: dict[str, list[str]] = {}
    for one, other in sorted(pairs, key=lambda pair: [order.index(each) for each in pair]):
        reasons.setdefault(pairs[one, other], []).append(f"`{one}` and `{other}`")
    for reason, several in reasons.items():
        yield f"| {', '.join(several)} | {reason} |"


def _readers() -> Iterator[str]:
    """A row for all readers that know the same, those of theorems left out."""
    rows: dict[str, list[str]] = {}
    for module, name in knowing():
        imported = importlib.import_module(f"shadowprice.{module}")
        if hasattr(imported, "STATUS"):
            continue
        path = module.replace(".", "/")
        which = "" if name == "KNOWS" else f" ({name})"
        link = f"[`{path}`{which}](../../shadowprice/{path}.py)"
        rows.setdefault(_words(getattr(imported, name)), []).append(link)
    for words, links in rows.items():
        yield f"| {', '.join(links)} | {words} |"


def _words(knows: frozenset[Feature]) -> str:
    """What is known, or all but what is not where that is shorter."""
    known = [f"`{each}`" for each in Feature if each in knows]
    unknown = [f"`{each}`" for each in Feature if each not in knows]
    if len(unknown) < len(known):
        return "all but " + ", ".join(unknown) if unknown else "all"
    return ", ".join(known) or "none"


def knowing() -> Iterator[tuple[str, str]]:
    """Every constant that says what a reader knows: module without the package, and name."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        # What is declared is listed for readers, and reads nothing itself.
        if "KNOWS" not in text or path == Path(features.__file__):
            continue
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.parse(text).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                targets = [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id.endswith("KNOWS"):
                    yield module, target.id


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
        for name in sys.argv[2:]:
            Path(name).write_text(record(), encoding="utf-8")
    else:
        print(page(), end="")
