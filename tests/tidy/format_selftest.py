#!/usr/bin/env python3
"""format.py must find a planted file, mend it when asked, and leave what .clang-format leaves alone."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Format(unittest.TestCase):
    def run_on(self, root, *more, **variables):
        return subprocess.run([sys.executable, HERE / "format.py", root, *more], capture_output=True, text=True,
                              check=False, env=dict(os.environ, **variables))

    def test_a_planted_file(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(HERE.parents[1] / ".clang-format", folder)
            source = Path(folder) / "runtime/a.cpp"
            source.parent.mkdir()
            source.write_text("int  f( ) {return 1 ;}\n")
            told = self.run_on(folder)
            self.assertEqual(told.returncode, 1, told)
            self.assertIn("runtime/a.cpp: not as clang-format writes it", told.stdout)
            self.assertEqual(self.run_on(folder, "--write").returncode, 0)
            self.assertEqual(source.read_text(), "int f() { return 1; }\n")
            self.assertEqual(self.run_on(folder).returncode, 0)

    def test_where_clang_format_is_missing(self):
        told = self.run_on(HERE.parents[1], CLANG_FORMAT="no-such-format")
        self.assertEqual(told.returncode, 1)
        self.assertIn("missing: no-such-format: apt-get install clang-format", told.stdout.splitlines()[-1])

    def test_an_empty_tree_is_a_mistake(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.run_on(folder).returncode, 1)


if __name__ == "__main__":
    unittest.main()
