"""What each case of sdk_test.py begins with: a fake, and what its user needs."""
import base64, pathlib, sys, unittest

# Only for this import: some SDKs are called as fakes are.
FAKES = str(pathlib.Path(__file__).resolve().parent.parent / "fakes")
sys.path.insert(0, FAKES)
import signatures  # noqa: E402,F401
from clients import FakeProcess  # noqa: E402

sys.path.remove(FAKES)

DATA = base64.b64encode(b"#!/bin/sh\nshutdown -h +60\n").decode()


class Sdk(unittest.TestCase):
    name = ""

    def setUp(self):
        self.fake = FakeProcess(self.name)
        self.settings, self.env = self.fake.settings, self.fake.env
        self.addCleanup(self.fake.close)

    def turn(self, seconds):
        self.fake.control("advance", seconds=seconds)

    def alive(self):
        return self.fake.state()["alive"]

    def operations(self):
        return {c["operation"] for c in self.fake.state()["calls"]}
