#!/usr/bin/env python3
"""layers.py must find each planted arrow, and must not object to a right one."""

import sys
import tempfile
import unittest
from pathlib import Path

import layers


class Layers(unittest.TestCase):
    def problems(self, file, include):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / file
            path.parent.mkdir(parents=True)
            path.write_text(f"#pragma once\n#include {include}\n")
            return layers.check(folder)[0]

    def refused(self, file, include, text):
        problems = self.problems(file, include)
        self.assertEqual(len(problems), 1, (file, include, problems))
        self.assertIn(f"{file}:2:", problems[0])
        self.assertIn(text, problems[0])

    def allowed(self, file, include):
        self.assertEqual(self.problems(file, include), [])

    def test_arrows_that_run_up(self):
        for file, include in [
            ("runtime/core/base/a.hpp", '"runtime/core/loop/loop.hpp"'),
            ("runtime/core/loop/a.cpp", '"runtime/core/store/journal.hpp"'),
            ("runtime/core/store/a.cpp", '"runtime/core/net/http.hpp"'),
            ("runtime/compute/device/a.cpp", '"runtime/compute/tensor/graph.hpp"'),
            ("runtime/compute/collective/a.cpp", '"runtime/compute/tensor/graph.hpp"'),
            ("runtime/compute/tensor/a.cpp", '"runtime/compute/data/checkpoint.hpp"'),
            ("runtime/workflow/provider/local/a.cpp", '"runtime/workflow/agent/protocol.hpp"'),
            ("runtime/workflow/agent/a.cpp", '"runtime/workflow/provider/provider.hpp"'),
            ("runtime/workflow/lease/a.cpp", '"runtime/workflow/engine/run.hpp"'),
            ("runtime/workflow/engine/a.cpp", '"bindings/host/host.hpp"'),
            ("kernels/a.cpp", '"runtime/core/base/error.hpp"'),
            ("bindings/host/a.cpp", '"bindings/lua/compute/tensor.hpp"'),
            ("bindings/lua/a.cpp", '"bindings/c/rille.h"'),
            ("bindings/c/a.cpp", "<bindings/cli/app.hpp>"),
        ]:
            self.refused(file, include, "may not include")

    def test_no_lua_below_the_bindings(self):
        for include in ["<lua.h>", "<lua.hpp>", "<luajit-2.1/lauxlib.h>", '"luajit.h"']:
            self.refused("runtime/workflow/engine/a.cpp", include, "no Lua")
        self.allowed("bindings/host/a.cpp", "<lua.hpp>")

    def test_headers_known_in_one_place(self):
        self.refused("bindings/cli/a.cpp", "<CLI/CLI.hpp>", "only in bindings/cli/parser")
        self.allowed("bindings/cli/parser/a.cpp", "<CLI/CLI.hpp>")
        self.refused("runtime/workflow/agent/a.cpp", "<curl/curl.h>", "only in runtime/core/net")
        self.allowed("runtime/core/store/a.cpp", "<sqlite3.h>")

    def test_paths(self):
        self.refused("runtime/core/base/a.cpp", '"../loop/loop.hpp"', "repository root")
        self.refused("runtime/core/base/a.cpp", '"error.hpp"', "repository root")
        self.refused("runtime/core/base/a.cpp", '"tests/unit/temp.hpp"', "may not include tests")
        self.refused("runtime/core/base/a.cpp", '"runtime/fog/fog.hpp"', "no layer")

    def test_a_folder_without_a_place(self):
        problems = self.problems("runtime/fog/a.cpp", "<vector>")
        self.assertEqual(len(problems), 1)
        self.assertIn("no layer", problems[0])

    def test_right_arrows(self):
        self.allowed("runtime/core/base/a.hpp", '"runtime/core/base/error.hpp"')
        self.allowed("runtime/core/net/a.cpp", '"runtime/core/loop/loop.hpp"')
        self.allowed("runtime/core/store/a.cpp", '"runtime/core/loop/loop.hpp"')
        self.allowed("runtime/workflow/engine/a.cpp", '"runtime/workflow/provider/provider.hpp"')
        self.allowed("bindings/cli/a.cpp", '"runtime/workflow/engine/engine.hpp"')

    def test_an_empty_tree_is_a_mistake(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(layers.check(folder), ([], 0))
            sys.argv = ["layers.py", folder]
            self.assertEqual(layers.main(), 1)


if __name__ == "__main__":
    unittest.main()
