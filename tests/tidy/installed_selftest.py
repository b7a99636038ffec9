#!/usr/bin/env python3
"""installed.py must find a library that nothing builds, and a bootstrap that builds too little."""

import tempfile
import unittest
from pathlib import Path

import installed

GOOD = "case $command in\n  build)\n    install_packages\n    build installed $(levels)\n    ;;\n"
SCRIPT = '''file(INSTALL DESTINATION "${{CMAKE_INSTALL_PREFIX}}/lib" TYPE SHARED_LIBRARY FILES
    "{0}/librille.so.0.1.0"
    "{0}/librille.so.0"
    )
file(INSTALL DESTINATION "${{CMAKE_INSTALL_PREFIX}}/bin" TYPE EXECUTABLE FILES "{0}/rille")
file(INSTALL DESTINATION "${{CMAKE_INSTALL_PREFIX}}/include" TYPE FILE FILES "{0}/generated.h")
'''


class Installed(unittest.TestCase):
    def test_what_is_installed(self):
        with tempfile.TemporaryDirectory() as folder:
            build = str(Path(folder).resolve())
            Path(build, "cmake_install.cmake").write_text(SCRIPT.format(build))
            self.assertEqual(installed.installed_by(build), {"librille.so", "rille"})

    def test_all_is_built(self):
        built = installed.built_by(": && c++ -shared -o librille.so.0.1.0 a.o\n: && c++ a.o -o rille  -lm\n"
                                   ": && rm -f librille.a && ar qc librille.a  a.o\n")
        self.assertEqual(installed.problems(GOOD, {"librille.so", "librille.a", "rille"}, built), [])

    def test_a_library_that_nothing_builds(self):
        found = installed.problems(GOOD, {"librille.so", "rille"}, {"rille"})
        self.assertEqual(len(found), 1)
        self.assertIn("librille.so", found[0])

    def test_a_bootstrap_that_builds_too_little(self):
        found = installed.problems(GOOD.replace("build installed", "build rille"), {"rille"}, {"rille"})
        self.assertEqual(len(found), 1)
        self.assertIn("bootstrap", found[0])

    def test_nothing_found(self):
        self.assertEqual(len(installed.problems(GOOD, set(), set())), 1)


if __name__ == "__main__":
    unittest.main()
