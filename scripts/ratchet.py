#!/usr/bin/env python3
"""Keeps the code from becoming dearer to change: scripts/ratchet.toml has the figures of each crate that may only fall, and
says which crates must not depend on which.

usage: scripts/ratchet.py [--accept CRATE]...

A figure that has grown is an error, with what to do about it. One that has fallen is written into scripts/ratchet.toml at
once, so that it cannot rise again. With --accept the figures of a crate (its folder below crates/) are written as they are.
"""

import argparse
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from measures import LONGEST_FILE, LONGEST_FUNCTION, arrows_between, read_crates

FILE = "scripts/ratchet.toml"

HEAD = """\
# The figures that no crate may exceed: scripts/ratchet.py compares them (`make ratchet`, part of `make lint`) and lowers
# them by itself. A change that makes a crate larger writes its line anew (scripts/ratchet.py --accept CRATE), and its commit
# says why.
#
# Lines and all that follows are those of source files without tests:
#   circles    files that use each other in a circle
#   functions  functions over 80 lines
#   files      files over 700 lines
#   particles  functions named by a particle or a participle
#   whats      comments that begin with "What"
"""

# The measures of a crate, and what is to be done about one that has grown.
ADVICE = {
    "lines": "take as many away elsewhere in the crate, or accept them and say in the commit why it grew",
    "circles": "move what both sides need into a file below them",
    "functions": "divide it into steps with names",
    "files": "divide it by what its parts are for",
    "particles": "name it by a verb phrase, or by the noun that it returns",
    "whats": "write a sentence with a subject, or leave out what the name says",
}


def measure(crate):
    return {
        "lines": crate.lines,
        "circles": sum(len(ring) for ring in crate.circles),
        "functions": len(crate.long_functions),
        "files": len(crate.long_files),
        "particles": len(crate.vague),
        "whats": crate.whats,
    }


def examples(crate, name):
    """Where in a crate a measure is found, in lines of a message."""
    found = {
        "circles": [" <-> ".join(ring) for ring in crate.circles],
        "functions": crate.long_functions,
        "files": crate.long_files,
        "particles": [f"{function.file}:{function.line} {function.name}" for function in crate.vague],
    }
    return "".join(f"\n    {one}" for one in found.get(name, []))


@dataclass
class Arrow:
    """A dependency that must not be, direct or by way of other crates."""

    source: str  # a crate, or a pattern of several
    to: str
    because: str
    exceptions: dict  # crates that have it today, and what is going to remove it


@dataclass
class Rules:
    crates: dict
    arrows: list

    @staticmethod
    def read(root):
        stored = tomllib.loads((Path(root) / FILE).read_text())
        arrows = [Arrow(a["from"], a["to"], a["because"], a.get("exceptions", {})) for a in stored.get("arrow", [])]
        return Rules(stored.get("crates", {}), arrows)

    def write(self, root):
        lines = [HEAD, "[crates]"]
        for name, measures in sorted(self.crates.items()):
            figures = ", ".join(f"{measure} = {value}" for measure, value in measures.items() if value)
            lines.append(f"{quoted(name)} = {{ {figures} }}")
        lines += ["", "# Crates that must not depend on one another, and those that do so today, with what is going to end it."]
        for arrow in self.arrows:
            lines += ["", "[[arrow]]", f'from = "{arrow.source}"', f'to = "{arrow.to}"', f'because = "{arrow.because}"']
            exceptions = ", ".join(f'{quoted(name)} = "{reason}"' for name, reason in arrow.exceptions.items())
            lines += [f"exceptions = {{ {exceptions} }}"] if exceptions else []
        (Path(root) / FILE).write_text("\n".join(lines) + "\n")


def quoted(key):
    return f'"{key}"' if "/" in key else key


def check_crates(rules, crates, accepted):
    """What has grown, as messages; what has shrunk or is accepted is changed in the rules."""
    problems = []
    for name in [name for name in rules.crates if name not in crates]:
        del rules.crates[name]
    for name, crate in crates.items():
        today = measure(crate)
        if name in accepted:
            rules.crates[name] = today
            continue
        if name not in rules.crates:
            problems.append(f"crates/{name} is not in {FILE}\n  hint: scripts/ratchet.py --accept {name}")
            continue
        known = rules.crates[name]
        for measured, value in today.items():
            allowed = known.get(measured, 0)
            if value > allowed:
                problems.append(
                    f"crates/{name}: {measured} {value}, and {FILE} has {allowed}{examples(crate, measured)}\n"
                    f"  hint: {ADVICE[measured]}\n"
                    f"  to accept it: scripts/ratchet.py --accept {name}"
                )
        rules.crates[name] = {measured: min(value, known.get(measured, 0)) for measured, value in today.items()}
    return problems


def check_arrows(rules, crates):
    """The arrows that must not be, as messages; exceptions that nobody needs any longer are taken from the rules."""
    problems = []
    for arrow in rules.arrows:
        found = arrows_between(crates, arrow.source, arrow.to)
        for name in found:
            if name not in arrow.exceptions:
                problems.append(
                    f"crates/{name} depends on crates/{arrow.to}, which must not be: {arrow.because}\n"
                    f"  hint: move what both need into a crate below them (`cargo tree -p` shows by way of which crates)"
                )
        arrow.exceptions = {name: reason for name, reason in arrow.exceptions.items() if name in found}
    return problems


def check(root, accepted=()):
    """What is wrong with the workspace in `root`, as messages. Its rules are written again where they are tighter now."""
    crates = read_crates(root)
    unknown = [name for name in accepted if name not in crates]
    if unknown:
        return [f"there is no crate {name}\n  hint: its folder below crates/, such as drivers/mqtt" for name in unknown]
    rules = Rules.read(root)
    problems = check_crates(rules, crates, accepted) + check_arrows(rules, crates)
    before = (Path(root) / FILE).read_text()
    rules.write(root)
    if (Path(root) / FILE).read_text() != before:
        print(f"{FILE} is written again: commit it with the change", file=sys.stderr)
    return problems


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--accept", action="append", default=[], metavar="CRATE")
    root = Path(__file__).parent.parent
    problems = check(root, arguments.parse_args().accept)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


assert f"{LONGEST_FUNCTION} lines" in HEAD and f"{LONGEST_FILE} lines" in HEAD

if __name__ == "__main__":
    main()
