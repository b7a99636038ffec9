"""Puts librille.so into the wheel: the file named by RILLE_LIBRARY, else that of the checkout's build. Without either
the package uses the installed library."""
import os
import shutil

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # older setuptools leave it to the package wheel
    from wheel.bdist_wheel import bdist_wheel

here = os.path.dirname(os.path.abspath(__file__))
built = os.path.join(here, "..", "..", "build", "release", "librille.so")
library = os.environ.get("RILLE_LIBRARY") or (built if os.path.exists(built) else None)


class Build(build_py):
    def run(self):
        super().run()
        if library:
            shutil.copyfile(os.path.realpath(library), os.path.join(self.build_lib, "rille", "librille.so"))


class Wheel(bdist_wheel):
    def get_tag(self):  # any Python 3, this platform: the code is Python, the library is not
        return "py3", "none", super().get_tag()[2]


class Binary(Distribution):
    def has_ext_modules(self):
        return True


setup(distclass=Binary, cmdclass={"build_py": Build, "bdist_wheel": Wheel})
