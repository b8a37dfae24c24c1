#!/usr/bin/env python3
"""Tests of the ratchet: small workspaces that get worse or better in one way."""

import tempfile
import unittest
from pathlib import Path

import ratchet

RULES = """
[crates]
engine = { lines = 3 }
report = { lines = 6 }

[[arrow]]
from = "engine"
to = "report"
because = "what measures knows no pages"

[[arrow]]
from = "drivers/*"
to = "engine"
because = "a driver moves bytes"
exceptions = { "drivers/mqtt" = "issue 1" }
"""

FINE = "pub mod trial;\n\npub fn measure() {}\n"
PAGE = "use pubgauge_engine::measure;\n\npub fn page() {\n    measure();\n}\n\n"


def manifest(name, *dependencies, tests=()):
    sections = ["[package]", f'name = "pubgauge-{name}"', "[dependencies]"]
    sections += [f"pubgauge-{other}.workspace = true" for other in dependencies]
    sections += ["[dev-dependencies]"] + [f"pubgauge-{other}.workspace = true" for other in tests]
    return "\n".join(sections) + "\n"


class Ratchet(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.write("scripts/ratchet.toml", RULES)
        # Tests may depend on anything.
        self.write("crates/engine/Cargo.toml", manifest("engine", tests=["report"]))
        self.write("crates/engine/src/lib.rs", FINE)
        self.write("crates/engine/tests/it.rs", "fn of() {}\n" * 900)
        self.write("crates/report/Cargo.toml", manifest("report", "engine"))
        self.write("crates/report/src/lib.rs", PAGE)

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def fails_with(self, *texts):
        problems = ratchet.check(self.root)
        self.assertEqual(len(problems), len(texts), problems)
        for problem, text in zip(problems, texts):
            self.assertIn(text, problem)
            self.assertIn("hint: ", problem)

    def rules(self):
        return ratchet.Rules.read(self.root)

    def test_what_is_as_it_was_passes(self):
        self.assertEqual(ratchet.check(self.root), [])
        self.assertEqual(self.rules().crates["engine"], {"lines": 3})

    def test_a_crate_that_grows_fails_until_it_is_accepted(self):
        self.write("crates/engine/src/lib.rs", FINE + "\npub fn decide() {}\n")
        self.fails_with("crates/engine: lines 5, and scripts/ratchet.toml has 3")
        self.assertEqual(self.rules().crates["engine"], {"lines": 3})
        self.assertEqual(ratchet.check(self.root, ["engine"]), [])
        self.assertEqual(ratchet.check(self.root), [])

    def test_inline_tests_are_no_growth(self):
        tests = "#[cfg(test)]\nmod tests {\n    fn of() {}\n}\n"
        self.write("crates/engine/src/lib.rs", FINE + tests)
        self.assertEqual(ratchet.check(self.root), [])

    def test_what_shrinks_cannot_come_back(self):
        self.write("crates/report/src/lib.rs", "pub fn page() {}\n")
        self.assertEqual(ratchet.check(self.root), [])
        self.write("crates/report/src/lib.rs", PAGE)
        self.fails_with("crates/report: lines 6, and scripts/ratchet.toml has 1")

    def test_an_arrow_against_sense_fails(self):
        self.write("crates/report/Cargo.toml", manifest("report"))
        self.write("crates/engine/Cargo.toml", manifest("engine", "report"))
        self.fails_with("crates/engine depends on crates/report, which must not be: what measures knows no pages")

    def test_an_arrow_by_way_of_another_crate_fails(self):
        self.write("crates/report/Cargo.toml", manifest("report"))
        self.write("crates/engine/Cargo.toml", manifest("engine", "between"))
        self.write("crates/between/Cargo.toml", manifest("between", "report"))
        self.fails_with("crates/between is not in scripts/ratchet.toml", "crates/engine depends on crates/report")

    def test_an_exception_holds_while_its_arrow_is_there(self):
        for name, driver in [("drivers/mqtt", "mqtt"), ("drivers/nats", "nats")]:
            self.write(f"crates/{name}/Cargo.toml", manifest(f"driver-{driver}", "engine"))
        accepted = ["drivers/mqtt", "drivers/nats"]
        problems = ratchet.check(self.root, accepted)
        self.assertEqual(len(problems), 1)
        self.assertIn("crates/drivers/nats depends on crates/engine", problems[0])
        for driver in ("mqtt", "nats"):
            self.write(f"crates/drivers/{driver}/Cargo.toml", manifest(f"driver-{driver}"))
        self.assertEqual(ratchet.check(self.root), [])
        self.assertEqual(self.rules().arrows[1].exceptions, {})

    def test_a_circle_of_files_fails(self):
        self.write("crates/engine/src/trial.rs", "use crate::phase;")
        self.write("crates/engine/src/phase.rs", "use super::step;")
        # A comment names what it likes.
        self.write("crates/engine/src/step.rs", "// crate::trial")
        self.assertEqual(ratchet.check(self.root, ["engine"]), [])
        self.assertEqual(ratchet.check(self.root), [])
        self.write("crates/engine/src/step.rs", "use crate::trial;")
        self.fails_with("phase <-> step <-> trial")

    def test_long_functions_and_files_fail(self):
        long = "fn lead() {\n" + "    step();\n" * 79 + "}\n"
        self.write("crates/engine/src/lib.rs", long)
        problems = ratchet.check(self.root)
        self.assertIn("engine/src/lib.rs:1 lead, 81 lines", problems[1])
        self.write("crates/engine/src/lib.rs", "\n" * 701)
        problems = ratchet.check(self.root)
        self.assertIn("engine/src/lib.rs, 701 lines", problems[1])
        self.write("crates/engine/src/lib.rs", long.replace("    step();\n", "", 1) + "\n" * 500)
        self.fails_with("crates/engine: lines 580")

    def test_names_and_comments_fail(self):
        self.write("crates/engine/src/lib.rs", "fn told() {}\n\n")
        self.fails_with("engine/src/lib.rs:1 told")
        self.write("crates/engine/src/lib.rs", "/// What it does.\nfn lead() {}\n")
        self.fails_with("whats 1, and scripts/ratchet.toml has 0")

    def test_a_crate_that_is_gone_leaves_the_rules(self):
        (self.root / "crates/report/Cargo.toml").unlink()
        self.assertEqual(ratchet.check(self.root), [])
        self.assertEqual(list(self.rules().crates), ["engine"])


if __name__ == "__main__":
    unittest.main()
