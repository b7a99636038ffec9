#!/usr/bin/env python3
"""run.py must fail on a page whose blocks do not do what it says. usage: run_selftest.py LUAJIT

LuaJIT stands in for rille: `luajit run FILE` is made from a two-line script.
"""

import os
import sys
import tempfile
import unittest
from pathlib import Path

import run

LUAJIT = sys.argv.pop() if len(sys.argv) > 1 else "luajit"


class Pages(unittest.TestCase):
    def problems(self, text, name="page.md"):
        with tempfile.TemporaryDirectory() as folder:
            fake = Path(folder, "rille")
            fake.write_text(f'#!/bin/sh\nexec {LUAJIT} "$2"\n')
            os.chmod(fake, 0o755)
            page = Path(folder, name)
            page.parent.mkdir(exist_ok=True)
            page.write_text(text)
            return run.check_page(str(fake), LUAJIT, page)

    def test_a_right_page(self):
        page = ("a\n```lua\nprint(1)\nprint(2)\n```\n```output\n1\n...\n```\n```sh\n$ false\n```\n"
                "```lua\n-- fragment\nx()\n```\n")
        self.assertEqual(self.problems(page), ([], 2))

    def test_a_failing_block_is_named_by_its_line(self):
        problems, _ = self.problems("a\n\n```lua\nerror('no')\n```\n")
        self.assertEqual(len(problems), 1)
        self.assertIn("page.md:4: exit code 1", problems[0])

    def test_other_output(self):
        self.assertIn("printed\n1\n", self.problems("```lua\nprint(1)\n```\n\n```output\n2\n```\n")[0][0])

    def test_syntax(self):
        for page in ["```lua\n-- fragment\nx(\n```\n", "```lua\nlocal = 1\n```\n"]:
            self.assertIn("block:", self.problems(page)[0][0])
        self.assertEqual(len(self.problems("```lua\nlocal =\n```\n", "reference/rille.md")[0]), 1)

    def test_reference_examples_are_not_run(self):
        self.assertEqual(self.problems("```lua\nbox:call()\n```\n", "reference/rille.md"), ([], 1))

    def test_ellipsis(self):
        self.assertTrue(run.matches("a\n...\nb\n", "a\nx\ny\nb\n"))
        self.assertTrue(run.matches("...\nb\n", "b\n"))
        self.assertFalse(run.matches("a\n...\nb\n", "a\nx\n"))
        self.assertFalse(run.matches("a.c\n", "abc\n"))


if __name__ == "__main__":
    unittest.main()
