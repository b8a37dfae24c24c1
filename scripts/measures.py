#!/usr/bin/env python3
"""Measures how dear this code is to change, from its text alone.

usage: scripts/measures.py [SINCE]

Prints one measure a line: declarations of a fact, circles of files, arrows between crates that must not be, names,
comments, lengths; with the commit SINCE, how many files and crates the commits after it touched. The ratchet
(scripts/ratchet.py) holds crates to most of them. Tests, benches and fuzz targets do not count.
"""

import re
import statistics
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path

LONGEST_FUNCTION = 80
LONGEST_FILE = 700

# Fields that ought to be declared in two structs at most: the engine's record and the stored part.
FACTS = ("not_connected", "poll_when_idle", "pacing_within", "published", "refused", "duplicated")

# Names that say nothing of what a function does or returns: particles, participles and the like.
VAGUE = frozenset(
    """
    after again all alone apart asked asking asks at before began begins begun beside between beyond both by
    each else end ended ends enough far few found given gone heard here how in kept least left little made make
    makes many more most much near of on one ones other others over own part parts piece pieces place placed
    places put puts rest said say says seen show shown side sides some stands stood taken taking tell tells
    there to together told took under went what who whole why with within without word words
    """.split()
)

# A type's name with so many meanings or more has to be looked up each time.
MANY_MEANINGS = 4

NOT_SOURCE = {"tests", "benches", "fuzz", "target"}

VISIBILITY = r"(?:pub(?:\([^)]*\))?\s+)?"
FUNCTION = re.compile(rf'(\s*){VISIBILITY}(?:const\s+)?(?:unsafe\s+)?(?:extern "C" )?fn\s+(\w+)')
TYPE = re.compile(rf"^\s*{VISIBILITY}(?:struct|enum|trait|type|union)\s+(\w+)", re.M)
STRUCT = re.compile(rf"^\s*{VISIBILITY}struct (\w+)[^;{{(]*\{{(.*?)^\s*\}}", re.M | re.S)
INLINE_TESTS = re.compile(r"^#\[cfg\(test\)\]\s*\nmod \w+ \{", re.M)
WHAT = re.compile(r"^\s*//[/!]? ?What ", re.M)
SAME = re.compile(r"^\s*//[/!] (?:The same|As in)\b", re.M)


@dataclass
class Function:
    file: str
    line: int
    name: str
    lines: int

    def __str__(self):
        return f"{self.file}:{self.line} {self.name}, {self.lines} lines"


@dataclass
class SourceFile:
    """A file of a crate without its tests."""

    name: str  # below crates/
    module: tuple  # its path within the crate
    text: str

    @cached_property
    def lines(self):
        return self.text.splitlines()

    @cached_property
    def functions(self):
        found = []
        for start, line in enumerate(self.lines):
            if head := FUNCTION.match(line):
                closing = re.compile(re.escape(head[1]) + r"\}")
                ends = (at for at in range(start, len(self.lines)) if closing.match(self.lines[at]))
                found.append(Function(self.name, start + 1, head[2], next(ends, start) - start + 1))
        return found


@dataclass
class Crate:
    name: str  # its folder below crates/
    package: str
    dependencies: list  # packages, those of tests left out
    files: list

    @property
    def lines(self):
        return sum(len(file.lines) for file in self.files)

    @property
    def functions(self):
        return [function for file in self.files for function in file.functions]

    @property
    def long_functions(self):
        return [function for function in self.functions if function.lines > LONGEST_FUNCTION]

    @property
    def long_files(self):
        return [f"{file.name}, {len(file.lines)} lines" for file in self.files if len(file.lines) > LONGEST_FILE]

    @property
    def vague(self):
        return [function for function in self.functions if function.name in VAGUE]

    @property
    def whats(self):
        return sum(len(WHAT.findall(file.text)) for file in self.files)

    @cached_property
    def circles(self):
        """Modules that use each other, directly or by way of others, as lists of their names."""
        modules = {file.module: file for file in self.files}
        uses = {module: uses_of(file, modules) for module, file in modules.items()}
        rings = [ring for ring in components(uses) if len(ring) > 1]
        return [sorted("/".join(module) or "lib" for module in ring) for ring in rings]


def without_tests(text):
    tests = INLINE_TESTS.search(text)
    return text[: tests.start()] if tests else text


def module_of(path):
    parts = path.with_suffix("").parts
    return tuple(parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts)


def read_crates(root):
    """All crates of the workspace in the folder `root`, by their names."""
    folder = Path(root) / "crates"
    crates = {}
    for manifest in sorted(folder.rglob("Cargo.toml")):
        home = manifest.parent
        described = tomllib.loads(manifest.read_text())
        if "package" not in described or NOT_SOURCE & set(home.relative_to(folder).parts):
            continue
        files = []
        for path in sorted((home / "src").rglob("*.rs")):
            if NOT_SOURCE & set(path.relative_to(home).parts) or path.name.endswith("tests.rs"):
                continue
            text = without_tests(path.read_text())
            files.append(SourceFile(str(path.relative_to(folder)), module_of(path.relative_to(home / "src")), text))
        name = str(home.relative_to(folder))
        crates[name] = Crate(name, described["package"]["name"], list(described.get("dependencies", {})), files)
    return crates


def uses_of(file, modules):
    """The modules of its crate that a file names in paths from `crate`, `super` and `self`."""
    used = set()
    for start, rest in re.findall(r"\b(crate|super|self)((?:::\w+)+)", re.sub(r"//.*", "", file.text)):
        segments = rest.split("::")[1:]
        at = {"crate": (), "self": file.module, "super": file.module[:-1]}[start]
        while segments and segments[0] == "super":
            segments, at = segments[1:], at[:-1]
        for segment in segments:
            if at + (segment,) not in modules:
                break
            at += (segment,)
        if at != file.module and at in modules:
            used.add(at)
    return used


def reachable(edges, start):
    """The nodes that can be reached from `start`, which is among them only where it lies on a circle."""
    found, waiting = set(), [start]
    while waiting:
        for node in edges.get(waiting.pop(), ()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def components(edges):
    """The sets of nodes that can all reach each other."""
    below = {node: reachable(edges, node) for node in edges}
    rings = {node: frozenset({node} | {other for other in below[node] if node in below[other]}) for node in edges}
    return sorted(set(rings.values()), key=sorted)


def arrows_between(crates, source, target):
    """The crates whose names match `source` and that depend on the crate `target`, by way of whichever others."""
    by_package = {crate.package: crate for crate in crates.values()}
    edges = {name: [by_package[p].name for p in crate.dependencies if p in by_package] for name, crate in crates.items()}
    return [name for name in crates if fnmatch(name, source) and target in reachable(edges, name)]


def meanings_of_types(crates):
    """How many files define a type of a name, for names with many."""
    files = defaultdict(set)
    for crate in crates.values():
        for file in crate.files:
            for name in TYPE.findall(file.text):
                files[name].add(file.name)
    counts = Counter({name: len(at) for name, at in files.items() if len(at) >= MANY_MEANINGS})
    return counts.most_common()


def declarations(crates, fact):
    """In how many structs a fact is a field."""
    field = re.compile(rf"^\s*{VISIBILITY}{fact}:", re.M)
    files = [file for crate in crates.values() for file in crate.files]
    return sum(bool(field.search(body)) for file in files for _, body in STRUCT.findall(file.text))


def reach(root, since):
    """Of each commit after `since`: the added lines of source, and the files and crates that they are in."""
    git = lambda *args: subprocess.run(["git", "-C", root, *args], capture_output=True, text=True, check=True).stdout
    for commit in git("log", "--format=%H", "--no-merges", f"{since}..HEAD").split():
        rows = [row.split("\t") for row in git("show", "--numstat", "--format=", commit).splitlines()]
        rows = [(int(added), path) for added, _, path in rows if added.isdigit() and is_source(path)]
        yield sum(added for added, _ in rows), len(rows), len({path.split("/src/")[0] for _, path in rows})


def is_source(path):
    in_crate = path.startswith("crates/") and path.endswith(".rs")
    return in_crate and not path.endswith("tests.rs") and not NOT_SOURCE & set(path.split("/"))


def main():
    # Only here: the ratchet's rules say which arrows must not be.
    from ratchet import Rules

    root = Path(__file__).parent.parent
    crates = read_crates(root)
    every = crates.values()
    print("lines:", sum(crate.lines for crate in every), "in", len(crates), "crates")
    print("declarations of a fact:", ", ".join(f"{fact} {declarations(crates, fact)}" for fact in FACTS))
    rings = [f"{crate.name} {len(ring)}" for crate in every for ring in crate.circles]
    print(f"circles of files: {len(rings)}: {'; '.join(rings)}")
    rules = Rules.read(root).arrows
    arrows = [f"{name} -> {arrow.to}" for arrow in rules for name in arrows_between(crates, arrow.source, arrow.to)]
    print(f"arrows that must not be: {len(arrows)}: {'; '.join(arrows)}")
    functions = sum(len(crate.functions) for crate in every)
    print(f"functions named by a particle: {sum(len(crate.vague) for crate in every)} of {functions}")
    types = meanings_of_types(crates)
    print(f"type names with four meanings or more: {len(types)}: {', '.join(f'{n} {c}' for n, c in types)}")
    same = sum(len(SAME.findall(file.text)) for crate in every for file in crate.files)
    print(f"comments 'What ...': {sum(crate.whats for crate in every)}; 'The same', 'As in': {same}")
    long_functions = sum(len(crate.long_functions) for crate in every)
    long_files = sum(len(crate.long_files) for crate in every)
    print(f"functions over {LONGEST_FUNCTION} lines: {long_functions}; files over {LONGEST_FILE}: {long_files}")
    if len(sys.argv) > 1:
        commits = list(reach(str(root), sys.argv[1]))
        for low, high in [(20, 60), (61, 200)]:
            if of_size := [commit for commit in commits if low <= commit[0] <= high]:
                files, touched = (statistics.median(commit[at] for commit in of_size) for at in (1, 2))
                print(f"reach of {len(of_size)} commits of {low}-{high} added source lines: ", end="")
                print(f"median {files:g} files in {touched:g} crates")


if __name__ == "__main__":
    main()
