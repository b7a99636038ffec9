#!/usr/bin/env python3
"""The contract of an object store: one suite, on every server.

usage: stores_test.py STORE_TOOL SERVER [CASE ..]
SERVER: s3 oss cos obs gs gs_workload az az_token az_sas: scripted fakes that verify signatures (fake_store.py)
        moto rclone fake_gcs: servers of others, from the Python that runs this (tests/requirements*.txt)
"""
import base64, hashlib, http.client, json, os, subprocess, sys, time, unittest, urllib.parse
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "fakes")]
import fake_az  # noqa: E402
import fake_gs  # noqa: E402
import fake_kin  # noqa: E402
import fake_store  # noqa: E402
import foreign  # noqa: E402

FAKES = dict(s3=fake_store.S3, oss=fake_kin.Oss, cos=fake_kin.Cos, obs=fake_kin.Obs, gs=fake_gs.Gs,
             gs_workload=lambda: fake_gs.Gs(local_key=False), az=fake_az.Az, az_token=lambda: fake_az.Az("token"),
             az_sas=lambda: fake_az.Az("sas"))
FOREIGN = dict(moto=foreign.Moto, rclone=foreign.Rclone, fake_gcs=foreign.FakeGcs)
KEYS = ["plain", "a b+c%20d&e=f", "höhe/中文/\U0001f600", "x//y", "~tilde*'()!", "ends/", "q?endpoint", "#hash;semi@",
        "back\\slash", "UPPER/lower", "dots/./../end"]


class Failed(Exception):

    def __init__(self, error):
        super().__init__(json.dumps(error))
        self.error = error

    def __getattr__(self, name):
        return self.error.get(name, "")


class Tool:
    """store_tool.cpp in a process of its own."""

    def __init__(self, program, environment, url, settings, **more):
        # Nothing of the user's: neither keys nor the metadata service of this machine.
        clean = dict(PATH=os.environ["PATH"], HOME="/nonexistent", AWS_EC2_METADATA_DISABLED="true",
                     AZURE_CONFIG_DIR="/nonexistent")
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(clean, **environment))
        self.about = self("open", url=url, settings=settings, **more)

    def __call__(self, call, **fields):
        self.process.stdin.write(json.dumps(dict(call=call, **fields)) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["ok"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


def made(size, seed=0):
    return bytes((i * 7 + (i >> 10) + seed) % 251 for i in range(size))


def text(value):
    """A string of the tool's, which writes bytes that are not UTF-8 apart."""
    return base64.b64decode(value["$bytes"]) if isinstance(value, dict) else value.encode()


class Contract(unittest.TestCase):
    program = kind = ""
    maxDiff = 2000

    def setUp(self):
        self.fake = self.kind in FAKES
        self.server = (FAKES.get(self.kind) or FOREIGN[self.kind])()
        self.addCleanup(self.server.close)
        self.tools = []
        self.addCleanup(lambda: [tool.close() for tool in self.tools])

    def open(self, key="", environment=None, region=None, **more):
        tool = Tool(self.program, environment or self.server.environment(), self.server.url(key, region),
                    self.server.settings(), **more)
        self.tools.append(tool)
        return tool

    def needs(self, condition, why):
        if not condition:
            self.skipTest(why)

    def fails(self, kind, call, *args, **fields):
        with self.assertRaises(Failed) as caught:
            call(*args, **fields)
        error = caught.exception
        self.assertEqual(error.kind, kind, error.error)
        for secret in (fake_store.SECRET, fake_az.KEY, "token-"):
            self.assertNotIn(secret, json.dumps(error.error))
        return error

    # What is put is got.

    def test_put_head_get_delete(self):
        tool = self.open()
        version = tool("put", key="a/b", text="hello", content_type="text/plain")
        self.assertTrue(version)
        info = tool("head", key="a/b")
        self.assertEqual((info["size"], info["version"]), (5, version))
        self.assertLess(abs(info["modified_us"] / 1e6 - time.time()), 90)
        got = tool("get", key="a/b")
        self.assertEqual((text(got["text"]), got["version"], got["size"]), (b"hello", version, 5))
        self.assertTrue(tool("put", key="a/b", text="other"))
        self.assertEqual(text(tool("get", key="a/b")["text"]), b"other")
        tool("remove", key="a/b")
        tool("remove", key="a/b")
        self.assertEqual(self.fails("state", tool, "head", key="a/b").http_status, 404)
        error = self.fails("state", tool, "get", key="a/b")
        self.assertEqual(error.http_status, 404)
        self.assertIn(self.server.url("a/b").partition("?")[0], error.message)

    def test_empty_object(self):
        tool = self.open()
        tool("put", key="empty", text="")
        self.assertEqual(tool("head", key="empty")["size"], 0)
        self.assertEqual(tool("get", key="empty")["bytes"], 0)
        self.assertEqual(tool("get", key="empty", offset=0, length=10)["bytes"], 0)

    def test_ranges(self):
        tool, data = self.open(), made(10_000, 3)
        tool("put", key="r", size=10_000, seed=3)
        for offset, length in ((0, 1), (0, 100), (9_999, 1), (9_990, 100), (5, -1), (0, -1), (10_000, -1), (777, 1234)):
            got = tool("get", key="r", offset=offset, length=length)
            wanted = data[offset:] if length < 0 else data[offset:offset + length]
            self.assertEqual((got["bytes"], got["sha256"]), (len(wanted), hashlib.sha256(wanted).hexdigest()),
                             (offset, length))
            self.assertEqual(got["size"], 10_000)
        self.fails("invalid", tool, "get", key="r", offset=10_001)
        self.fails("invalid", tool, "get", key="r", offset=-1)

    def test_keys_are_kept_as_they_are(self):
        tool = self.open()
        keys = [k for k in KEYS if k not in self.server.without]
        for key in keys:
            tool("put", key=key, text=key)
        for key in keys:
            self.assertEqual(text(tool("get", key=key)["text"]), key.encode())
        self.assertEqual(tool("list")["keys"], sorted(keys, key=str.encode))
        for key in keys:
            tool("remove", key=key)
        self.assertEqual(tool("list")["keys"], [])
        self.fails("invalid", tool, "put", key="", text="")
        self.fails("invalid", tool, "put", key="k" * 1025, text="")

    def test_large_body_is_read_in_pieces(self):
        tool = self.open()
        size = 9 << 20
        tool("put", key="large", size=size, seed=1)
        self.assertEqual(tool("get", key="large")["sha256"], hashlib.sha256(made(size, 1)).hexdigest())

    # Lists.

    def test_list_of_ten_thousand(self):
        tool, count = self.open(), 10_000
        if self.fake:
            for i in range(count):
                self.server.add(f"many/{i:05}")
        else:
            count = 2_500
            tool("fill", prefix="many/", count=count)
        tool("put", key="other", text="")
        found = tool("list", prefix="many/")
        self.assertEqual(found["keys"], [f"many/{i:05}" for i in range(count)])
        self.assertGreater(found["pages"], 1)
        page = tool("page", prefix="many/", count_max=7)
        self.assertEqual([o["key"] for o in page["objects"]], [f"many/{i:05}" for i in range(7)])
        page = tool("page", prefix="many/", count_max=7, token=page["next"])
        self.assertEqual(page["objects"][0]["key"], "many/00007")
        self.assertEqual(tool("list", delimiter="/"), dict(keys=["other"], prefixes=["many/"], pages=1))

    def test_prefix_that_is_also_an_object(self):
        tool = self.open()
        keys = [k for k in ("data", "data/", "data/1", "data/2/x", "database") if k not in self.server.without]
        for key in keys:
            tool("put", key=key, text="x")
        found = tool("list", prefix="data", delimiter="/")
        self.assertEqual((found["keys"], found["prefixes"]), ([k for k in keys if "/" not in k], ["data/"]))
        found = tool("list", prefix="data/", delimiter="/")
        self.assertEqual(([k for k in found["keys"] if k != "data/"], found["prefixes"]), (["data/1"], ["data/2/"]))
        self.assertEqual(text(tool("get", key=keys[0])["text"]), b"x")

    def test_list_that_never_ends(self):
        self.needs(self.fake, "only a fake goes round in a circle")
        tool, self.server.repeat_token = self.open(), True
        self.server.add("x")
        self.assertIn("circle", self.fails("integrity", tool, "list").message)

    # Parts.

    def parts(self, tool, key, sizes):
        upload = tool("begin", key=key, content_type="text/x-parts")
        rows = [tool("part", key=key, upload=upload, number=n, size=size, seed=n) for n, size in sizes]
        return upload, rows

    def test_parts(self):
        self.needs(self.kind not in ("fake_gcs", ), "it has no XML interface")
        tool, five = self.open(), 5 << 20
        upload, rows = self.parts(tool, "parts/k+ä", [(2, five), (1, five), (3, 10)])
        version = tool("complete", key="parts/k+ä", upload=upload, parts=rows)
        wanted = made(five, 1) + made(five, 2) + made(10, 3)
        got = tool("get", key="parts/k+ä")
        self.assertEqual(got["sha256"], hashlib.sha256(wanted).hexdigest())
        if self.kind != "rclone":  # which tells the version of the parts, and then that of a file
            self.assertEqual((got["version"], got["type"]), (version, "text/x-parts"))
        upload, rows = self.parts(tool, "gone", [(1, 10)])
        tool("abort", key="gone", upload=upload)
        tool("abort", key="gone", upload=upload)
        self.assertEqual(self.fails("state", tool, "head", key="gone").http_status, 404)

    def test_end_of_parts_whose_answer_is_lost(self):
        self.needs(self.fake, "only a fake loses answers")
        for kind in ("drop_after", "error_after", "late"):
            tool = self.open()
            upload, rows = self.parts(tool, kind, [(1, 100), (2, 10)])
            self.server.fault(kind, "complete")
            self.assertTrue(tool("complete", key=kind, upload=upload, parts=rows))
            self.assertEqual(tool("get", key=kind)["sha256"], hashlib.sha256(made(100, 1) + made(10, 2)).hexdigest())
        if not self.kind.startswith("az"):
            error = self.fails("state", tool, "complete", key=kind, upload="no such", parts=rows)
            self.assertEqual(error.http_status, 404)

    # Conditions.

    def test_conditional_put(self):
        tool = self.open()
        if not tool.about["puts_if_absent"]:
            self.assertIn("only if there is none", self.fails("invalid", tool, "put", key="c", if_absent=True).message)
            return
        self.needs(self.kind != "rclone", "its server takes no conditions")
        self.needs(self.kind != "fake_gcs", "its server looks at conditions only where the body has parts")
        first = tool("put", key="c", text="one", if_absent=True)
        self.assertEqual(self.fails("state", tool, "put", key="c", text="two", if_absent=True).http_status, 412)
        self.assertEqual(text(tool("get", key="c")["text"]), b"one")
        if tool.about["puts_if_match"]:
            second = tool("put", key="c", text="two", if_match=first)
            self.assertEqual(self.fails("state", tool, "put", key="c", text="three", if_match=first).http_status, 412)
            self.assertNotEqual(first, second)
        else:
            self.fails("invalid", tool, "put", key="c", text="x", if_match=first)

    def test_conditional_end_of_parts(self):
        tool = self.open()
        self.needs(tool.about["completes_if_absent"], "this store has none")
        self.needs(self.kind not in ("rclone", "moto"), "its server does not look at it")
        tool("put", key="e", text="first")
        upload, rows = self.parts(tool, "e", [(1, 10)])
        self.assertEqual(
            self.fails("state", tool, "complete", key="e", upload=upload, parts=rows, if_absent=True).http_status, 412)
        self.assertEqual(text(tool("get", key="e")["text"]), b"first")

    def test_conditional_put_whose_answer_is_lost(self):
        self.needs(self.fake, "only a fake loses answers")
        tool = self.open()
        self.needs(tool.about["puts_if_absent"], "this store has none")
        self.server.fault("drop_after", "put")
        error = self.fails("state", tool, "put", key="l", text="mine", if_absent=True)
        self.assertEqual(error.http_status, 412)
        self.assertIn("answer was lost", error.message)

    def test_another_version(self):
        tool = self.open()
        first = tool("put", key="v", text="one")
        self.assertEqual(text(tool("get", key="v", if_match=first)["text"]), b"one")
        tool("put", key="v", text="two")
        self.fails("integrity", tool, "get", key="v", if_match=first)

    # What goes wrong.

    def test_wrong_bucket(self):
        self.needs(self.kind != "fake_gcs", "it answers in words of its own")
        tool = self.open()
        self.server.bucket, before = "absent-bucket" + self.server.bucket[6:], self.server.bucket
        other = self.open()
        self.server.bucket = before
        for call in ("list", "get", "head", "put"):
            error = self.fails("state", other, call, key="k", text="")
            self.assertEqual(error.http_status, 404)
            self.assertIn("absent-bucket", error.message)
            self.assertTrue(error.hint)
        tool.close()
        self.tools.remove(tool)

    def test_wrong_region(self):
        self.needs(self.kind in ("s3", "oss", "obs"), "only there a signature names a region")
        tool = self.open(region="us-west-9")
        tool("put", key="k", text="there")
        self.assertEqual(tool("head", key="k")["size"], 5)
        calls = len(self.server.calls)
        tool("head", key="k")
        self.assertEqual(len(self.server.calls), calls + 1)
        other = self.open(region="us-west-9")
        self.assertEqual(other("head", key="k")["size"], 5)

    def test_denied(self):
        self.needs(self.fake, "servers of others let everyone in")
        tool = self.open()
        self.server.add("k")
        for call, op in (("get", "get"), ("put", "put"), ("list", "list"), ("remove", "delete"), ("begin", "begin")):
            if (call, self.kind[:2]) != ("begin", "az"):  # which asks nothing
                self.server.fault("denied", op)
                error = self.fails("auth", tool, call, key="k", text="")
                self.assertTrue(error.hint)
                self.assertIn(self.server.bucket, error.message)

    def test_wrong_key(self):
        self.needs(self.kind in ("s3", "oss", "cos", "obs", "az"), "keys of other kinds are told at another place")
        wrong = {k: v if v == fake_store.ID else base64.b64encode(b"wrong").decode()
                 for k, v in self.server.environment().items()}
        error = self.fails("auth", self.open(environment=wrong), "list")
        self.assertIn(error.code, ("SignatureDoesNotMatch", "AuthenticationFailed"))
        self.assertTrue(error.hint)

    def test_no_keys(self):
        self.needs(self.kind in ("s3", "cos"), "one chain of keys is like another here")
        error = self.fails("auth", self.open(environment=dict(TENCENTCLOUD_REGION="x")), "list")
        self.assertIn("set ", error.hint)

    def test_keys_that_expire(self):
        if self.kind == "s3":
            tool = self.open(environment=dict(AWS_CONTAINER_CREDENTIALS_FULL_URI=self.server.endpoint + "/_keys"))
        else:
            self.needs(self.kind in ("gs", "gs_workload", "az_token"), "its keys do not expire here")
            tool = self.open()
        tool("put", key="k", text="x")
        self.server.dead = {f"token-{n}" for n in range(1, 99)}
        self.assertIn("sign in again", self.fails("auth", tool, "head", key="k").hint)
        last = self.server.tokens
        self.server.dead = {f"token-{n}" for n in range(1, last + 1)}
        self.assertEqual(tool("head", key="k")["size"], 1)

    def test_clock_off_by_an_hour(self):
        self.needs(self.kind not in FOREIGN, "only a fake has a clock that can be turned")
        for offset in (3600, -3600):
            tool, self.server.offset = self.open(), offset
            tool("put", key="k", text="x")
            self.assertEqual(tool("head", key="k")["size"], 1)
            if self.kind != "az_sas":
                self.assertEqual(self.ask(tool("presign", key="k", expires_s=60))[:2], (200, b"x"))

    def test_throttled(self):
        self.needs(self.fake, "servers of others do not throttle")
        tool = self.open()
        self.server.fault("throttle", "*", times=3)
        self.server.fault("throttle", "*", retry_after=1)
        tool("put", key="k", text="x")
        self.server.fault("throttle", "get", times=100)
        error = self.fails("quota", tool, "get", key="k")
        self.assertTrue(error.retryable)
        self.assertIn("rate", error.hint)

    def test_answers_that_are_lost(self):
        self.needs(self.fake, "only a fake loses answers")
        tool = self.open()
        for kind in ("error_after", "drop_after"):
            for op in ("put", "get", "list", "delete"):
                self.server.fault(kind, op)
            tool("put", key="k", text="x")
            self.assertEqual(tool("get", key="k")["bytes"], 1)
            tool("list")
            tool("remove", key="k")

    def test_cut_transfers_go_on(self):
        self.needs(self.fake, "only a fake cuts")
        tool, data = self.open(), made(200_000, 9)
        self.server.add("cut", data)
        self.server.fault("cut", "get", times=3, bytes=30_000)
        got = tool("get", key="cut")
        self.assertEqual(got["sha256"], hashlib.sha256(data).hexdigest())
        self.assertEqual([op for op, _ in self.server.calls].count("get"), 4)
        self.server.fault("cut", "get", times=2, bytes=1_000)
        got = tool("get", key="cut", offset=50_000, length=100_000)
        self.assertEqual(got["sha256"], hashlib.sha256(data[50_000:150_000]).hexdigest())
        self.server.fault("cut", "get", times=1000, bytes=0)
        self.fails("network", tool, "get", key="cut")

    def test_silent_transfers_go_on(self):
        self.needs(self.fake, "only a fake falls silent")
        tool, data = self.open(stall_ms=300), made(200_000, 9)
        self.server.add("slow", data)
        self.server.fault("silent", "get", bytes=30_000)
        self.assertEqual(tool("get", key="slow")["sha256"], hashlib.sha256(data).hexdigest())

    def test_object_that_changes_while_it_is_read(self):
        self.needs(self.fake, "only a fake cuts")
        tool = self.open()
        self.server.add("v", made(200_000))
        self.server.fault("change", "get", bytes=30_000)
        error = self.fails("integrity", tool, "get", key="v")
        self.assertIn("read it again", error.hint)

    # Addresses that anyone may use.

    def ask(self, address, data=None, **headers):
        """(status, body, ETag), as any program would get it that knows the address alone."""
        url = urllib.parse.urlsplit(address["url"])
        connection = http.client.HTTPConnection(url.netloc, timeout=60)
        connection.request("PUT" if data is not None else "GET", f"{url.path}?{url.query}", data,
                           dict(address["headers"], **headers))
        reply = connection.getresponse()
        try:
            return reply.status, reply.read(), reply.headers.get("ETag", "")
        finally:
            connection.close()

    def test_presigned(self):
        self.needs(self.kind != "fake_gcs", "it has no signing account")
        tool, key = self.open(), "sig/ä b+c"
        if self.kind == "az_sas":
            self.fails("auth", tool, "presign", key=key)
            return
        self.assertIn(self.ask(tool("presign", method="put", key=key), b"by hand")[0], (200, 201))
        address = tool("presign", key=key, expires_s=100)
        self.assertLess(abs(address["expires_us"] / 1e6 - time.time() - 100), 30)
        self.assertEqual(self.ask(address, Range="bytes=3-")[:2], (200 if self.kind == "rclone" else 206, b"hand"))
        if self.fake:
            self.server.add("gis/ä b+c")
            self.assertIn(self.ask(dict(address, url=address["url"].replace("sig/", "gis/")))[0], (400, 403))
            self.server.offset = 200
            self.assertIn(self.ask(address)[0], (400, 403))
            self.server.offset = 0
        if self.kind in ("gs", "gs_workload"):  # a generation is no ETag: the address itself names it
            old = tool("presign", key=key, version=tool("head", key=key)["version"])
            self.assertEqual(self.ask(old)[:2], (200, b"by hand"))
            self.assertIn(self.ask(dict(old, headers={}))[0], (400, 403))  # it cannot be left out
            tool("put", key=key, text="other b")
            self.assertEqual(self.ask(old)[0], 412)
        self.fails("invalid", tool, "presign", key=key, expires_s=604_801)
        self.fails("invalid", tool, "presign", key=key, expires_s=0)

    def test_presigned_parts(self):
        self.needs(self.kind not in ("az_sas", "fake_gcs"), "it cannot sign, or has no parts")
        tool = self.open()
        upload = tool("begin", key="p")
        rows = []
        for number, data in ((1, made(5 << 20, 1)), (2, b"end")):
            address = tool("presign", method="put", key="p", upload=upload, number=number)
            status, _, mark = self.ask(address, data)
            self.assertIn(status, (200, 201))
            rows.append(dict(number=number, mark=mark, size=len(data)))
        tool("complete", key="p", upload=upload, parts=rows)
        self.assertEqual(tool("head", key="p")["size"], (5 << 20) + 3)


if __name__ == "__main__":
    Contract.program, Contract.kind = sys.argv[1:3]
    if Contract.kind in FOREIGN and (why := FOREIGN[Contract.kind].missing()):
        print(f"missing: {why}")
        sys.exit(1)
    loader = unittest.defaultTestLoader
    loader.testNamePatterns = [f"*{name}*" for name in sys.argv[3:]] or None
    suite = loader.loadTestsFromTestCase(Contract)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(not result.wasSuccessful() or not result.testsRun)
