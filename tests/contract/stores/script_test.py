#!/usr/bin/env python3
"""rille.store and rille cp as a user has them, on scripted fakes. usage: script_test.py RILLE [CASE ..]"""
import json, os, shutil, subprocess, sys, tempfile, unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "fakes")]
import fake_store  # noqa: E402


class Scripts(unittest.TestCase):
    rille, patience_s = "", 100

    def setUp(self):
        self.server = fake_store.S3()
        self.addCleanup(self.server.close)
        self.root = Path(tempfile.mkdtemp(prefix="rille-stores-"))
        self.addCleanup(shutil.rmtree, self.root, True)
        self.env = dict(PATH=os.environ["PATH"], HOME=str(self.root), RILLE_HOME=str(self.root / "home"),
                        XDG_CONFIG_HOME=str(self.root / "config"), NO_COLOR="1", AWS_EC2_METADATA_DISABLED="true",
                        AWS_ENDPOINT_URL_S3=self.server.endpoint, AWS_REGION=self.server.region,
                        **self.server.environment())

    def run_rille(self, *words, code=0):
        done = subprocess.run([self.rille, *words], env=self.env, cwd=self.root, capture_output=True, text=True,
                              timeout=self.patience_s)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for secret in (fake_store.SECRET, ):
            self.assertNotIn(secret, done.stdout + done.stderr)
        return done

    def script(self, text, *words, code=0):
        (self.root / "script.lua").write_text('local rille = require "rille"\n' + text)
        return self.run_rille("run", *words, "script.lua", code=code)

    def test_all_methods(self):
        (self.root / "in.bin").write_bytes(bytes(range(256)) * 1000)
        done = self.script("""
local store = rille.store "s3://bucket/runs"
print(store, store.address)
print(store:put("a", "text").bytes, store:put("big", { file = "in.bin" }).bytes)
print(store:get("a"), store:get("big", { file = "out/big.bin" }).bytes)
print(store:exists("a"), store:exists("b"))
store:put("deep/x", "1")
for _, row in ipairs(store:list()) do io = nil print(row.key, row.size, row.modified > 1e9) end
for _, row in ipairs(store:list("", { folders = true })) do print(row.key, row.folder) end
local ok, err = pcall(store.put, store, "a", "other", { if_absent = true })
print(ok, err.kind, err.http_status)
local ok, err = pcall(store.get, store, "none")
print(ok, err.kind, err.http_status, err.message:find("s3://bucket/runs/none", 1, true) ~= nil)
local ok, err = pcall(store.list, store, "", { limit = 1 })
print(ok, err.kind, err.code)
store:delete("a") store:delete("a")
print(store:exists("a"))
""".replace(" io = nil", ""))
        self.assertEqual(done.stdout.split("\n")[:-1], [
            "Store 's3://bucket/runs/'\ts3://bucket/runs/", "4\t256000", "text\t256000", "true\tfalse", "a\t4\ttrue",
            "big\t256000\ttrue", "deep/x\t1\ttrue", "a\tnil", "big\tnil", "deep/\ttrue", "false\tstate\t412",
            "false\tstate\t404\ttrue", "false\tquota\tlimit", "false"])
        self.assertEqual((self.root / "out/big.bin").read_bytes(), (self.root / "in.bin").read_bytes())
        self.assertEqual(set(self.server.objects), {"runs/big", "runs/deep/x"})

    def test_a_resumed_run_does_not_ask_again(self):
        self.server.add("k", b"first")
        text = """
local store = rille.store "s3://bucket/"
local before = store:get("k")
store:put("mine", before .. "!")
if not rille.step("go on", function() return io.open("go") ~= nil end) then error("stops here") end
print(before, store:exists("mine"))
"""
        self.script(text, code=1)
        asked = len(self.server.calls)
        self.server.add("k", b"second")
        (self.root / "go").write_text("")
        self.run_rille("invalidate", "last", "main/go on#1")
        done = self.run_rille("resume", "last")
        self.assertIn("first\ttrue", done.stdout)
        self.assertEqual(self.server.calls[asked:], [("head", "mine")])

    def test_in_a_step(self):
        self.server.add("k", b"first")
        self.script("""
local store = rille.store "s3://bucket/"
local got = rille.step("copy", function()
  local ok, err = pcall(store.get, store, "none")
  assert(not ok and err.http_status == 404)
  store:put("mine", store:get("k") .. "!")
  return store:exists("mine") and #store:list()
end)
if not rille.step("go on", function() return io.open("go") ~= nil end) then error("stops here") end
print("objects", got)
""", code=1)
        self.assertEqual(self.server.objects["mine"].data, b"first!")
        asked = len(self.server.calls)
        (self.root / "go").write_text("")
        self.run_rille("invalidate", "last", "main/go on#1")
        self.assertIn("objects\t2", self.run_rille("resume", "last").stdout)
        self.assertEqual(self.server.calls[asked:], [])
        entries = json.loads(self.run_rille("show", "last", "--json").stdout)["entries"]
        self.assertNotIn("store", [e["kind"] for e in entries])

    def test_a_step_that_is_cancelled_ends_its_transfer(self):
        self.server.add("slow", bytes(1000))
        self.server.fault("silent", "get", bytes=10)
        done = self.script("""
local store = rille.store "s3://bucket/"
local first = rille.race {
  function() return rille.step("reads", function() return #store:get("slow") end) end,
  function() rille.sleep("1s") return "the other" end,
}
print(first)
""")
        self.assertIn("the other", done.stdout)

    def test_grants(self):
        self.server.add("k", b"x")
        text = 'print(pcall(function() return rille.store("s3://bucket/"):get("k") end))'
        done = self.script(text, "--grant", "network=example.org")
        self.assertIn("denied", done.stdout)
        self.assertEqual(self.server.calls, [])
        done = self.script(text, "--grant", f"network={self.server.host}")
        self.assertIn("the keys of aws", done.stdout)
        self.assertEqual(self.server.calls, [])
        done = self.script(text, "--grant", f"network={self.server.host}", "--grant", "providers=aws")
        self.assertIn("true\tx", done.stdout)

    def test_rehearsal(self):
        text = """
local store = rille.store "s3://bucket/"
store:put("a", "x")
assert(store:get("a", { sim = { result = "declared" } }) == "declared")
store:delete("a")
"""
        (self.root / "script.lua").write_text('local rille = require "rille"\n' + text)
        self.run_rille("simulate", "script.lua")
        self.assertEqual(self.server.calls, [])
        (self.root / "script.lua").write_text('require "rille".store("s3://bucket/"):get("a")\n')
        failed = self.run_rille("simulate", "script.lua", code=1)
        self.assertIn("give the simulation a result", failed.stdout + failed.stderr)

    # rille cp

    def test_cp_of_one_file(self):
        (self.root / "m.bin").write_bytes(b"model")
        self.run_rille("cp", "m.bin", "s3://bucket/models/")
        self.assertEqual(self.server.objects["models/m.bin"].data, b"model")
        self.run_rille("cp", "s3://bucket/models/m.bin", "copy/")
        self.assertEqual((self.root / "copy/m.bin").read_bytes(), b"model")
        self.assertIn("404", str(json.loads(self.run_rille("cp", "--json", "s3://bucket/none", "x", code=1).stdout)))
        self.assertFalse((self.root / "x").exists())

    def test_cp_of_a_large_file_in_parts(self):
        data = os.urandom(1 << 20) * 80
        (self.root / "large.bin").write_bytes(data)
        self.run_rille("cp", "large.bin", "s3://bucket/large.bin")
        self.assertEqual(self.server.objects["large.bin"].data, data)
        self.assertIn(("complete", "large.bin"), self.server.calls)
        self.server.fault("denied", "part")
        self.run_rille("cp", "large.bin", "s3://bucket/other.bin", code=1)
        self.assertEqual(self.server.uploads, {})  # the parts are gone, too

    def test_cp_of_folders(self):
        (self.root / "folder/deep").mkdir(parents=True)
        for name in ("a", "deep/höhe b", "deep/empty"):
            (self.root / "folder" / name).write_text("" if name.endswith("empty") else name)
        self.assertIn("cp -r", self.run_rille("cp", "folder", "s3://bucket/p", code=1).stderr)
        self.run_rille("cp", "-r", "folder", "s3://bucket/p")
        self.assertEqual(set(self.server.objects), {"p/a", "p/deep/höhe b", "p/deep/empty"})
        self.server.add("p/", b"")
        self.server.add("prefix-of-another", b"x")
        self.assertIn("3 files", self.run_rille("cp", "-r", "s3://bucket/p", "back").stderr)
        self.assertEqual((self.root / "back/deep/höhe b").read_text(), "deep/höhe b")
        self.assertEqual(sorted(p.name for p in (self.root / "back").rglob("*") if p.is_file()),
                         ["a", "empty", "höhe b"])

    def test_cp_of_a_pattern(self):
        for key in ("p/a.bin", "p/ab.bin", "p/höhe b.bin", "p/a.txt", "p/deep/a.bin", "p/deep/b.bin", "q.bin", "p/"):
            self.server.add(key, key.encode())
        for pattern, wanted in (("p/*.bin", ["a.bin", "ab.bin", "höhe b.bin"]), ("p/a*.bin", ["a.bin", "ab.bin"]),
                                ("p/*/*.bin", ["deep/a.bin", "deep/b.bin"]), ("p/*a*b*", ["ab.bin", "a.bin"]),
                                ("*.bin", ["q.bin"]), ("p/a*.bin*", ["a.bin", "ab.bin"])):
            shutil.rmtree(self.root / "to", True)
            self.run_rille("cp", "s3://bucket/" + pattern, "to/")
            made = {str(p.relative_to(self.root / "to")) for p in (self.root / "to").rglob("*") if p.is_file()}
            self.assertEqual(made, set(wanted), pattern)
        self.assertIn("no object matches", self.run_rille("cp", "s3://bucket/p/*.gz", "to/", code=1).stderr)
        self.assertIn("is no folder", self.run_rille("cp", "s3://bucket/p/*.bin", "one", code=1).stderr)
        self.assertFalse((self.root / "one").exists())

    def test_cp_of_keys_that_lead_out_of_the_folder(self):
        for key in ("p/../../evil", "p//etc/x", "p/a/./b"):
            self.server.objects.clear()
            self.server.add(key, b"x")
            self.assertIn("cannot be a file below", self.run_rille("cp", "-r", "s3://bucket/p", "back", code=1).stderr)
        self.assertFalse((self.root / "evil").exists() or (self.root / "back").exists())

    def test_cp_mistakes(self):
        for words, says in ((("a", "b"), "neither 'a' nor 'b' is an address"),
                            (("s3://a-b/x", "s3://a-b/y"), "are both addresses"),
                            (("s3://bucket/", "x"), "cp -r"), (("none", "s3://bucket/x"), "No such file"),
                            (("-r", "s3://bucket/none", "x"), "there is no object")):
            self.assertIn(says, self.run_rille("cp", *words, code=1).stderr)


if __name__ == "__main__":
    Scripts.rille = os.path.abspath(sys.argv[1])
    unittest.defaultTestLoader.testNamePatterns = [f"*{name}*" for name in sys.argv[2:]] or None
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(Scripts))
    sys.exit(not result.wasSuccessful() or not result.testsRun)
