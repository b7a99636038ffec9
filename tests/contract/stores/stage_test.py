#!/usr/bin/env python3
"""box:stage from a store, which the instance fetches by itself. usage: stage_test.py RILLE [CASE ..]

The runner asks the store with its keys, the instance by signed addresses: the fake's log tells who has fetched."""
import hashlib, io, json, os, sys, tarfile, unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "fakes")]
import fake_gs  # noqa: E402
import fake_store  # noqa: E402
import script_test  # noqa: E402


class Logged(fake_store.S3):
    """Notes who is given an object: "instance" by a signed address, "runner" with its keys."""

    def __init__(self):
        self.gets = []
        super().__init__()

    def perform(self, op, key, request):
        reply = super().perform(op, key, request)
        if op == "get":
            self.gets.append((key, "instance" if "X-Amz-Signature" in request.asked else "runner"))
        return reply

    def fetched(self):
        """The keys since the last call, by whom."""
        gets, self.gets = self.gets, []
        return {who: sorted({key for key, by in gets if by == who}) for who in ("instance", "runner")}


def tar_of(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Staging(script_test.Scripts):

    def setUp(self):
        super().setUp()
        self.server.close()
        self.server = Logged()
        self.addCleanup(self.server.close)
        self.env["AWS_ENDPOINT_URL_S3"] = self.server.endpoint

    def stage(self, text, *words, code=0):
        rent = 'local box = rille.rent("b", { provider = "local", ttl = "1h" })\n'
        done = self.script(rent + text, *words, code=code)
        done.stdout = done.stdout.partition("\nLEASE ")[0]  # the table of costs
        return done

    def files(self, folder):
        root = self.root / folder
        return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}

    def refused(self, source, options=""):
        """The error of a stage, as a script sees it; nothing was fetched."""
        done = self.stage(f"""
local ok, err = pcall(box.stage, box, "{source}", "data/"{options})
assert(not ok, "it was staged")
print(err.kind, err.http_status, err.message, err.hint)""")
        self.assertEqual(self.server.gets, [])
        return done.stdout

    def test_a_prefix_is_a_folder(self):
        data = {"a": b"A" * 1000, "deep/höhe 中": b"B" * 70, "empty": b"", "large": os.urandom(1 << 20) * 40}
        for name, value in data.items():
            self.server.add("d/" + name, value)
        self.server.add("d/", b"")
        self.server.add("data", b"of another prefix")
        done = self.stage("""
local moved = box:stage("s3://bucket/d/", "data/")
print(moved.files, moved.bytes)
box:get("data", "back")""")
        self.assertEqual(done.stdout.split(), ["4", str(sum(map(len, data.values())))])
        self.assertEqual(self.files("back"), data)
        fetched = self.server.fetched()
        self.assertEqual(fetched["runner"], [])
        self.assertEqual(set(fetched["instance"]) | {"d/empty"}, {"d/" + name for name in data})

    def test_a_mirror_fetches_what_changed_and_removes_what_went(self):
        for name in ("same", "changed", "gone/x"):
            self.server.add("d/" + name, name.encode())
        self.stage("""
box:stage("s3://bucket/d/", "data/", { mirror = true })
box:exec("own", { argv = { "sh", "-c", "echo own > data/own" } })
local store = rille.store "s3://bucket/d/"
store:delete "gone/x"
store:put("changed", "is new")
store:put("more", "more")
print(box:stage("s3://bucket/d/", "data", { mirror = true }).files)
box:get("data", "back")""")
        self.assertEqual(self.files("back"), {"same": b"same", "changed": b"is new", "more": b"more"})
        self.assertEqual(sorted(self.server.gets), sorted(
            (key, "instance") for key in ("d/same", "d/changed", "d/gone/x", "d/changed", "d/more")))

    def test_a_local_folder_is_mirrored(self):
        (self.root / "folder/sub").mkdir(parents=True)
        for name in ("a", "sub/b"):
            (self.root / "folder" / name).write_text(name)
        self.stage("""
box:stage("folder", "data", { mirror = true })
box:exec("more", { argv = { "sh", "-c", "mkdir data/old && echo x > data/old/x" } })
box:stage("folder", "data/", { mirror = true })
box:get("data", "back")""")
        self.assertEqual(self.files("back"), {"a": b"a", "sub/b": b"sub/b"})

    def test_an_archive_is_unpacked(self):
        data = {"x": b"1", "in/y": b"22"}
        self.server.add("d.tar.gz", tar_of(data))
        (self.root / "here.tar.gz").write_bytes(tar_of({"z": b"333"}))
        done = self.stage("""
local moved = box:stage("s3://bucket/d.tar.gz", "data/", { unpack = true })
print(moved.files, moved.bytes)
print(box:stage("here.tar.gz", "data", { unpack = true }).files)
box:get("data", "back")
box:exec("left", { argv = { "sh", "-c", "ls -A > names" } })
box:get("names", "names")""")
        self.assertEqual(done.stdout.split(), ["2", "3", "1"])
        self.assertEqual(self.files("back"), dict(data, z=b"333"))
        self.assertNotIn("unpack", (self.root / "names").read_text())  # the archive is gone
        self.assertEqual(self.server.fetched(), {"instance": ["d.tar.gz"], "runner": []})

    def test_one_object_and_its_version(self):
        whole = self.server.add("p", b"exact")
        self.server.add("p/a", b"below")
        self.server.add("q?x=1#y", b"odd")
        digest = hashlib.sha256(b"exact").hexdigest()
        done = self.stage(f"""
local moved = box:stage("s3://bucket/p", "one/", {{ sha256 = "{digest.upper()}", bandwidth = "10MB/s" }})
print(moved.files, moved.bytes, moved.version)
box:stage("s3://bucket/p", "two/")
box:stage("s3://bucket/p/", "all")
box:stage("s3://bucket/q?x=1#y", "odd/")
for _, name in ipairs {{ "one", "two", "all", "odd" }} do box:get(name, "back/" .. name) end""")
        self.assertEqual(done.stdout.split(), ["1", "5", whole.etag])
        self.assertEqual(self.files("back"), {"one/p": b"exact", "two/p": b"exact", "all/a": b"below",
                                              "odd/q?x=1#y": b"odd"})
        self.assertIn("end the address with \"/\"", done.stderr)
        self.assertIn("integrity", self.stage(f"""
print(pcall(box.stage, box, "s3://bucket/p", "bad", {{ sha256 = "{"0" * 64}" }}))""").stdout)

    def test_an_object_of_gs_is_overwritten_between_list_and_get(self):
        class Overwritten(fake_gs.Gs):

            def perform(self, op, key, request):
                if op == "get" and "X-Goog-Signature" in request.asked:
                    self.add(key, b"other")
                return super().perform(op, key, request)

        gs = Overwritten()
        self.addCleanup(gs.close)
        gs.add("d/x", b"first")
        settings = self.root / "providers.json"
        settings.write_text(json.dumps(gs.settings()))
        self.env.update(gs.environment(), RILLE_PROVIDERS=str(settings), GOOGLE_CLOUD_PROJECT="project")
        done = self.stage('''
for _, from in ipairs { "gs://bucket/d/x", "gs://bucket/d/" } do
  local ok, err = pcall(box.stage, box, from, "data/")
  print(ok, err.kind)
end''')
        self.assertEqual(done.stdout.split(), ["false", "integrity"] * 2)

    def test_patterns(self):
        for key in ("d/1.bin", "d/2.txt", "d/deep/3.bin", "e/4.bin"):
            self.server.add(key, key.encode())
        self.stage("""
box:stage("s3://bucket/d/*.bin", "one")
box:stage("s3://bucket/d/**/*.bin", "deep")
box:stage("s3://bucket/?/*.bin", "both")
for _, name in ipairs { "one", "deep", "both" } do box:get(name, "back/" .. name) end""")
        self.assertEqual(sorted(self.files("back")), ["both/d/1.bin", "both/e/4.bin", "deep/1.bin", "deep/deep/3.bin",
                                                      "one/1.bin"])

    def test_keys_that_cannot_be_files(self):
        for keys, named in ((("d/ok", "d/../evil"), "d/../evil"), (("d/ok", "d//x"), "d//x"),
                            (("d/a", "d/a/b"), "d/a/b")):
            self.server.objects.clear()
            for key in keys:
                self.server.add(key)
            said = self.refused("s3://bucket/d/")
            self.assertIn("invalid", said)
            self.assertIn("s3://bucket/" + named, said)

    def test_mistakes(self):
        self.server.add("d/x", b"x")
        for source, says in (("s3://bucket/none", "404"), ("s3://bucket/none/", "404"), ("s3://other/x", "404"),
                             ("s3://bucket/d/x/", "without the")):
            said = self.refused(source)
            self.assertTrue(said.startswith("state"), said)
            self.assertIn(says, said)
        for source, options, says in (
                ("s3://bucket/d/", "{ unpack = true }", "unpack"), ("s3://bucket/d/x", "{ mirror = true }", "mirror"),
                ("s3://bucket/d/", '{ sha256 = ("0"):rep(64) }', "sha256"),
                ("s3://bucket/d/", "{ mirror = true, unpack = true }", "do not go together"),
                ("s3://bucket/d/", '{ bandwidth = "fast" }', "bandwidth"),
                ("s3://bucket/d/", "{ mirror = 1 }", "true or false"),
                ("s3://bucket/d/", "{ Mirror = true }", "mirror"), ("ftp://x/y", "{}", "is not supported")):
            said = self.refused(source, ", " + options)
            self.assertTrue(said.startswith("invalid"), said)
            self.assertIn(says, said)
        self.server.fault("denied", "*", 100)
        self.assertTrue(self.refused("s3://bucket/d/").startswith("auth"))

    def test_a_server_that_answers_a_range_with_200(self):  # as `rclone serve s3` does
        self.server.partial, data = 200, os.urandom(33 << 20)
        self.server.add("big", data)
        self.stage('box:stage("s3://bucket/big", "x") box:get("x", "got/")')
        self.assertEqual(self.files("got"), {"x": data})

    def test_a_right_is_missing(self):
        self.server.add("d/x", b"x")
        self.server.fault("denied", "get", 100)
        said = self.refused("s3://bucket/d/")
        self.assertTrue(said.startswith("auth"), said)
        self.assertIn("s3://bucket/d/x: AccessDenied", said)  # the object, not a signed address or the server's XML
        self.assertIn("need the right", said)
        self.assertNotIn("<", said)

    def test_grants(self):
        self.server.add("k", b"x")
        (self.root / "script.lua").write_text('''local rille = require "rille"
local box = rille.rent("b", { provider = "local", ttl = "1h" })
print(pcall(box.stage, box, "s3://bucket/k", "k"))''')
        base = ["run", "--grant", "process", "--grant", "providers=local"]
        host = ["--grant", f"network={self.server.host}"]
        self.assertIn("needs the grant", self.run_rille(*base, "script.lua").stdout)
        self.assertIn("the keys of aws", self.run_rille(*base, *host, "script.lua").stdout)
        self.assertEqual(self.server.calls, [])
        done = self.run_rille(*base, *host, "--grant", "providers=aws", "script.lua")
        self.assertTrue(done.stdout.startswith("true"), done.stdout)

    def test_a_simulation_asks_no_store(self):
        (self.root / "script.lua").write_text('''local rille = require "rille"
local box = rille.rent("b", { gpu = "any", ttl = "1h" })
box:stage("s3://bucket/d/", "data/", { mirror = true, sim = { size = "20GB" } })''')
        self.run_rille("simulate", "script.lua")
        self.assertEqual(self.server.calls, [])


if __name__ == "__main__":
    Staging.rille = os.path.abspath(sys.argv[1])
    names = [name for name in unittest.defaultTestLoader.getTestCaseNames(Staging) if name in vars(Staging)]
    names = [name for name in names if not sys.argv[2:] or any(word in name for word in sys.argv[2:])]
    result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(map(Staging, names)))
    sys.exit(not result.wasSuccessful() or not result.testsRun)
