#!/usr/bin/env python3
"""local_names.py must find each planted pair of names, and must not object to names that may stand side by side."""

import sys
import tempfile
import unittest
from pathlib import Path

import local_names


def unnamed(text, space="rille"):
    return f"namespace {space} {{\nnamespace {{\n\n{text}\n}}  // namespace\n}}  // namespace {space}\n"


class LocalNames(unittest.TestCase):
    def check(self, one, two, room="runtime/core/base", other=None):
        with tempfile.TemporaryDirectory() as folder:
            for file, text in ((f"{room}/a.cpp", one), (f"{other or room}/b.cpp", two)):
                path = Path(folder) / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return local_names.check(Path(folder))[0]

    def found(self, one, two, words):
        problems = self.check(one, two)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(words, problems[0])

    def test_functions(self):
        one = unnamed("int open(int a, std::map<int, int> b = {}) {\n  return f(a);\n}\n")
        two = unnamed('// open(x)\nstd::string open(const char* p,\n                 int mode) {\n  return "}";\n}\n')
        self.found(one, two, "b.cpp:5: open with 2 parameters is also in runtime/core/base/a.cpp:4")
        self.found(one, unnamed("template <class T, class = int>\nint* open(T t, int);\n"), "open with 2")
        static = "namespace rille {\nstatic int open(int a, int b) { return a; }\n}  // namespace rille\n"
        self.found(one, static, "open with 2")
        self.assertEqual(self.check(one, unnamed("int open(int a) { return a; }\n")), [])
        self.assertEqual(self.check(one, unnamed("int opened(int a, int b) { return open(a, b); }\n")), [])

    def test_classes_and_constants(self):
        self.found(unnamed("struct Place {\n  int a;\n};\n"), unnamed("class Place final : public A {\n};\n"), "Place")
        self.found(unnamed("constexpr int limit = 3;\n"), unnamed("const char* const limit[] = {\n    0};\n"), "limit")
        self.found(unnamed("std::atomic<int> count{0};\n"), unnamed("std::mutex count;\n"), "count")
        self.found(unnamed("using Row = int;\n"), unnamed("using Row = long;\n"), "Row")
        self.assertEqual(self.check(unnamed("using Row = int;\n"), unnamed("using Row = int;\n")), [])
        self.assertEqual(self.check(unnamed("namespace fs = std::filesystem;\n"),
                                    unnamed("namespace fs = std::filesystem;\n")), [])

    def test_what_is_not_local(self):
        text = "namespace rille {\nint A::open(int a) { return a; }\n}  // namespace rille\n"
        self.assertEqual(self.check(text, text), [])
        outside = unnamed("int a;\n") + "namespace rille {\nint open(int a) { return a; }\n}  // namespace rille\n"
        self.assertEqual(self.check(outside, unnamed("int open(int a) { return a; }\n")), [])

    def test_other_places(self):
        text = unnamed("int open(int a) { return a; }\n")
        self.assertEqual(self.check(text, text.replace("rille", "rille::net")), [])
        self.assertEqual(self.check(text, text, other="runtime/core/net"), [])
        self.assertEqual(self.check(text, text, room="runtime/compute/device/cuda"), [])

    def test_an_empty_tree_is_a_mistake(self):
        with tempfile.TemporaryDirectory() as folder:
            sys.argv = ["local_names.py", folder]
            self.assertEqual(local_names.main(), 1)


if __name__ == "__main__":
    unittest.main()
