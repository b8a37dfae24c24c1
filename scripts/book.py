#!/usr/bin/env python3
"""Gathers the pages of the book in target/book/src: docs/ as it is, and the pages at the top of the repository beside it.

A link to another file of the repository gets a copy of that file, so that the book is whole without the repository. A link that
leads nowhere, and a page that docs/SUMMARY.md does not list, is an error.

usage: scripts/book.py
"""

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "target/book/src"
TOP = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
FENCE = re.compile(r"^\s*(```|~~~)")
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\])\(([^()\s]+)\)")


def prose_lines(text):
    """The lines of a page, each with whether it stands outside of code blocks."""
    inside = False
    for line in text.splitlines():
        fence = FENCE.match(line)
        yield line, not inside and not fence
        if fence:
            inside = not inside


def anchors(text):
    """The names that headings can be linked by, as mdbook and GitHub make them."""
    found = {}
    names = set()
    for line, is_prose in prose_lines(text):
        if is_prose and (heading := re.match(r"#{1,6} (.*)", line)):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            name = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
            number = found.get(name, 0)
            found[name] = number + 1
            names.add(f"{name}-{number}" if number else name)
    return names


def pages():
    """The source of each page of the book by its name there."""
    all_pages = {path.name: path for path in sorted((ROOT / "docs").glob("*.md"))}
    return all_pages | {name: ROOT / name for name in TOP}


class Book:
    """The pages, what is wrong with them, and the other files that they need."""

    def __init__(self):
        self.sources = pages()
        self.texts = {name: path.read_text() for name, path in self.sources.items()}
        self.anchors = {name: anchors(text) for name, text in self.texts.items()}
        self.names = {path.resolve(): name for name, path in self.sources.items()}
        self.problems = []
        self.files = set()

    def target(self, name, number, link):
        """The link as it is in the book."""
        if re.match(r"[a-z]+:", link):
            return link
        path, _, anchor = link.partition("#")
        source = self.sources[name]
        file = (source.parent / path).resolve() if path else source.resolve()
        if not file.exists() or not file.is_relative_to(ROOT):
            self.problems.append(f"{source.relative_to(ROOT)}:{number}: {link} leads nowhere")
            return link
        page = self.names.get(file)
        if page is None:
            self.files.add(file)
            return os.path.join("files", file.relative_to(ROOT))
        if anchor and anchor not in self.anchors[page]:
            self.problems.append(f"{source.relative_to(ROOT)}:{number}: {link}: {page} has no such heading")
        return page + (f"#{anchor}" if anchor else "")

    def page(self, name):
        """The text of a page with the links that it has in the book."""
        lines = []
        for number, (line, is_prose) in enumerate(prose_lines(self.texts[name]), 1):
            if is_prose:
                code = [match.span() for match in CODE.finditer(line)]

                def relinked(match):
                    # Code that shows a link is no link; code as the words of a link is.
                    if any(start <= match.start() < end for start, end in code):
                        return match[0]
                    return f"{match[1]}({self.target(name, number, match[2])})"

                line = LINK.sub(relinked, line)
            lines.append(line)
        return "\n".join(lines) + "\n"

    def write(self):
        """Writes all pages and files."""
        listed = set(re.findall(r"\]\(([^)]+)\)", self.texts["SUMMARY.md"]))
        for name in sorted(self.sources.keys() - {"SUMMARY.md"} - listed):
            self.problems.append(f"docs/SUMMARY.md does not list {name}")
        shutil.rmtree(BOOK, ignore_errors=True)
        BOOK.mkdir(parents=True)
        self.texts["SUMMARY.md"], summary = "", self.texts["SUMMARY.md"]
        for name in self.sources:
            (BOOK / name).write_text(summary if name == "SUMMARY.md" else self.page(name))
        for file in sorted(self.files):
            copy = BOOK / "files" / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if file.is_dir():
                shutil.copytree(file, copy, dirs_exist_ok=True)
            else:
                shutil.copy(file, copy)


def main():
    book = Book()
    book.write()
    for problem in book.problems:
        print(problem, file=sys.stderr)
    return 1 if book.problems else 0


if __name__ == "__main__":
    sys.exit(main())
