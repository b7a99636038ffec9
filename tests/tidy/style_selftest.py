#!/usr/bin/env python3
"""style.py must find each planted fault, and must not object to tidy files."""

import sys
import tempfile
import unittest
from pathlib import Path

import style

HEADER = "// What it is for.\n#pragma once\n"


class Style(unittest.TestCase):
    def check(self, file, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return style.check(folder)

    def found(self, file, text, words):
        problems = self.check(file, text)[0]
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(words, problems[0])

    def clean(self, file, text):
        self.assertEqual(self.check(file, text)[0], [])

    def test_size(self):
        self.found("runtime/core/base/a.cpp", "int a;\n" * 601, "601 lines")
        problems, remarks, _ = self.check("runtime/core/base/a.cpp", "int a;\n" * 401)
        self.assertEqual((problems, len(remarks)), ([], 1))
        self.found("stdlib/a.lua", "-" * 121 + "\n", "121 columns")
        self.found("bootstrap", "#" * 121 + "\n", "121 columns")

    def test_functions(self):
        long = "  int x;\n" * 70
        for signature in ["int f(int a) {", "Async<Value> Calls::run_call(std::string a,\n                    int b) {",
                          "Loop::Loop()\n    : a_(1) {"]:
            self.found("runtime/core/base/a.cpp", f"{signature}\n{long}}}\n", "a function of 7")
        self.found("bindings/lua/a.hpp", HEADER + f"struct A {{\n  int f() {{\n{long}  }}\n}};\n", "a function of 72")
        self.clean("runtime/core/base/a.cpp", "int f() {\n" + "  int x;\n" * 68 + "}\n")
        self.clean("runtime/core/base/a.cpp", f"class A : public B {{\n{long}}};\n")
        self.clean("runtime/core/base/a.cpp", f"namespace {{\n{long}}}\n")

    def test_leftovers(self):
        for word in ["TO" + "DO", "FIX" + "ME", "X" * 3]:
            self.found("runtime/core/base/a.cpp", f"// {word}: later\n", "leftover")
        self.clean("runtime/core/base/a.cpp", "auto s = temp_name(\"run-" + "X" * 6 + "\");\n")

    def test_white_space(self):
        self.found("workflows/a.lua", "\tlocal a\n", "a tab")
        self.found("workflows/a.lua", "local a \n", "space at the end")
        self.found("workflows/a.lua", "local a", "no newline")

    def test_headers(self):
        self.found("runtime/core/base/a.hpp", "// What it is for.\nint a;\n", "#pragma once")
        self.found("runtime/core/base/a.hpp", "#pragma once\n", "opens with")
        self.clean("runtime/core/base/a.hpp", HEADER)
        self.clean("bindings/c/rille.h", "/* The C API. */\n#ifndef RILLE_H\n#define RILLE_H\n#endif\n")

    def test_a_library_neither_prints_nor_exits(self):
        for line in ["std::cout << 1;", 'printf("x");', 'std::printf("x");', 'puts("x");', 'fmt::print("x");']:
            self.found("runtime/core/base/a.cpp", line + "\n", "does not print")
        for line in ["exit(1);", "std::exit(1);", "abort();"]:
            self.found("kernels/a.cpp", line + "\n", "does not exit")
        self.found("runtime/core/base/a.cpp", "throw std::bad_alloc();\n", "errors are values")
        self.found("tests/sim/a.cpp", "auto x = y ? co_await f() : 0;\n", "breaks under GCC 12")
        for line in ['snprintf(b, 9, "x");', "process.exit(1);", "// calls exit(1)", 'auto s = "exit(1)";',
                     "on_exit(1);", "transaction->abort();", "_exit(127);"]:
            self.clean("runtime/core/base/a.cpp", line + "\n")
        self.clean("bindings/cli/a.cpp", 'printf("x");\n')

    def test_an_empty_tree_is_a_mistake(self):
        with tempfile.TemporaryDirectory() as folder:
            sys.argv = ["style.py", folder]
            self.assertEqual(style.main(), 1)


if __name__ == "__main__":
    unittest.main()
