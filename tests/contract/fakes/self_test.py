#!/usr/bin/env python3
"""Plays simple clients against every fake: what a provider promises, each fault, and the known answers of the
providers' signatures. usage: self_test.py [NAME ..]
"""
import importlib, json, ssl, sys, time, unittest, urllib.error, urllib.parse, urllib.request

from clients import ApiError, FakeProcess, FakeServer

NAMES = ["aws", "alibaba", "tencent", "runpod", "kubernetes", "azure", "gcp", "huawei", "lambda", "vast"]


class Case(unittest.TestCase):
    """One fake. Time is turned, never waited for."""
    kind = fake = None

    def setUp(self):
        self.fake = FakeServer(self.kind.name)
        self.client = self.kind(self.fake)

    def tearDown(self):
        self.fake.close()

    equal = unittest.TestCase.assertEqual

    def code(self, code, act):
        with self.assertRaises(ApiError) as got:
            act()
        self.equal(got.exception.code, code, got.exception.text)
        return got.exception

    def turn(self, seconds):
        self.fake.control("advance", seconds=seconds)

    def now(self):
        return self.fake.state()["now"]

    def wall(self):
        return self.fake.state()["wall"]

    def machine(self, id):
        return next(m for m in self.fake.state()["machines"] if m["id"] == id)

    def alive(self, tag=None):
        return [
            m["id"] for m in self.fake.state()["machines"]
            if m["state"] not in ("gone", "ending") and (tag is None or m["tag"] == tag)
        ]

    def fault(self, kind, operation="*", **more):
        self.fake.control("fault", kind=kind, operation=operation, **more)

    def made_lost(self, act):
        """Runs a create whose answer is not one."""
        with self.assertRaises((ApiError, ConnectionError)):
            act()

    def test_a_machine_lives_and_goes(self):
        id = self.client.create(token="t-1", tag="one")
        self.turn(30)
        self.equal(self.client.describe(id), "running")
        self.equal(self.client.list("one"), [id])
        self.equal(self.client.list("other"), [])
        self.client.terminate(id)
        self.turn(60)
        self.equal(self.client.describe(id), "gone")
        self.equal(self.client.list("one"), [])
        state = self.fake.state()
        self.equal((state["alive"], self.machine(id)["tag"]), (0, "one"))
        self.assertTrue(all(o["alive"] is False or not o["billable"] for o in state["objects"]))
        create = [c for c in state["calls"] if c["operation"] == self.client.create_operation]
        self.equal((len(create), create[0]["status"] < 300), (1, True))
        self.equal(create[0]["token"], self.client.sent("t-1"))

    def test_a_wrong_signature_is_refused(self):
        for secret in self.client.secret_names():
            self.client.credentials[secret] = "wrong" + self.client.credentials[secret]
        self.client.renew()
        self.code(self.client.CODES["signature"], lambda: self.client.create(tag="x"))
        self.equal(self.fake.state()["machines"], [])

    def test_tokens(self):
        first = self.client.create(token="t-1", tag="one")
        self.equal(self.machine(first)["state"] in ("starting", "running"), True)
        if not self.client.token:
            self.client.no_token(self, first)
            return
        self.equal(self.client.create(token="t-1", tag="one"), first)
        if self.client.mismatch:
            self.code(self.client.mismatch, lambda: self.client.create(token="t-1", tag="one", type=self.client.other))
        self.equal(len(self.alive()), 1)
        if "long_token" in self.client.CODES:
            self.code(self.client.CODES["long_token"], lambda: self.client.create(token="t" * 65))

    def test_a_new_machine_is_seen_late(self):
        self.fake.control("set", lag=20)
        id = self.client.create(token="t-1", tag="one")
        late = self.client.lagging
        unseen = (self.client.describe(id) == "gone", self.client.list("one"))
        self.equal(unseen, (late == "both", [] if late else [id]))
        self.turn(21)
        self.equal((self.client.describe(id), self.client.list("one")), ("running", [id]))

    def test_pages(self):
        ids = [self.client.create(token=f"t-{n}", tag="many") for n in range(5)]
        self.client.create(token="t-x", tag="other")
        self.fake.control("set", page_size=2)
        self.equal(sorted(self.client.list("many")), sorted(ids))
        if self.client.paged:
            lists = [c for c in self.fake.state()["calls"] if c["operation"] == self.client.list_operation]
            self.equal(len(lists) >= 3, True)
        self.fake.control("set", page_size=0)
        self.fault("duplicates", self.client.list_operation)
        self.equal(sorted(self.client.list("many")), sorted(ids * 2))

    def test_rules_of_parameters(self):
        self.code(self.client.CODES["missing"], lambda: self.client.create(drop=self.client.required))
        self.code(self.client.CODES["unknown"], lambda: self.client.create(**self.client.unknown))
        self.equal(self.fake.state()["machines"], [])

    def test_refusals_by_script(self):
        for kind in ("capacity", "quota", "throttle", "error", "auth"):
            self.fault(kind, self.client.create_operation, times=2)
            for _ in range(2):
                self.code(self.client.CODES[kind], lambda: self.client.order(token="t-" + kind, tag="x"))
            self.client.renew()
        self.fault("throttle", self.client.create_operation, retry_after=7)
        e = self.code(self.client.CODES["throttle"], lambda: self.client.create(token="t-y", tag="x"))
        self.equal(e.headers["Retry-After"], "7")
        self.fault("drop", self.client.create_operation)
        self.made_lost(lambda: self.client.create(token="t-z", tag="x"))
        self.equal(self.alive(), [])
        self.fault("error", times=1000)
        self.fake.control("calm")
        self.client.create(token="t-a", tag="x")

    def test_answers_lost_after_the_effect(self):
        for n, kind in enumerate(("error_after", "drop_after")):
            self.fault(kind, self.client.create_operation)
            self.made_lost(lambda: self.client.create(token=f"t-{n}", tag=f"lost-{n}"))
            self.equal(len(self.client.list(f"lost-{n}")), 1)
            if self.client.token:
                id = self.client.create(token=f"t-{n}", tag=f"lost-{n}")
                self.equal(self.client.list(f"lost-{n}"), [id])

    def test_answers_that_are_cut_short_or_of_a_proxy(self):
        for kind, made in (("unreadable_after", 1), ("page", 0)):
            self.fault(kind, self.client.create_operation)
            try:
                self.client.create(token=f"t-{made}", tag=f"cut-{made}")
            except Exception:  # as that client is; some need no more of the answer than its headers
                pass
            self.equal(len(self.client.list(f"cut-{made}")), made)

    def test_a_slow_answer_comes(self):
        self.fault("slow", self.client.create_operation, seconds=0.2)
        began = time.monotonic()
        self.client.create(token="t-1", tag="x")
        self.assertGreater(time.monotonic() - began, 0.19)

    def test_a_clock_that_is_an_hour_off(self):
        self.fault("skew", seconds=3600)
        if "skew" in self.client.CODES:
            self.code(self.client.CODES["skew"], lambda: self.client.create(token="t-1", tag="x"))
        self.client.shift = 3600
        self.client.renew()
        self.client.create(token="t-1", tag="x")

    def test_machines_that_vanish(self):
        id = self.client.create(token="t-1", tag="x")
        self.turn(30)
        self.fake.control("vanish", id=id)
        self.equal((self.client.describe(id), self.client.list("x")), ("gone", []))
        self.fault("vanish", seconds=100)
        id = self.client.create(token="t-2", tag="x")
        self.turn(30)
        self.equal(self.client.describe(id), "running")
        self.turn(100)
        self.equal(self.client.describe(id), "gone")

    def test_spot(self):
        if not self.client.spot:
            return
        id = self.client.create(token="t-1", tag="x", spot=True)
        self.equal(self.machine(id)["price"], self.client.price())
        if "spot_price" in self.client.CODES:
            self.code(self.client.CODES["spot_price"],
                      lambda: self.client.create(token="t-2", tag="x", spot=True, cap="0.001"))
        self.turn(30)
        self.equal(self.client.notice(id), None)
        self.fake.control("set", notice=60)
        self.fake.control("reclaim", id=id, in_seconds=60)
        if self.client.noticed:
            self.assertTrue(self.client.notice(id))
        self.turn(59)
        self.equal(self.client.describe(id), "running")
        self.turn(120)
        self.equal(self.client.describe(id) in self.client.reclaimed, True, self.client.describe(id))
        self.equal(self.machine(id)["reason"], "reclaim")

    def test_room_runs_out(self):
        self.fake.control("set", quota=1)
        self.client.create(token="t-1", tag="x")
        self.code(self.client.CODES["quota"], lambda: self.client.order(token="t-2", tag="x"))
        self.fake.control("set", quota=None, stock={self.client.type: 1})
        self.client.create(token="t-3", tag="x")
        self.code(self.client.CODES["capacity"], lambda: self.client.order(token="t-4", tag="x"))
        self.client.create(token="t-5", tag="x", type=self.client.other)

    def test_the_bill(self):
        id = self.client.create(token="t-1", tag="x")
        self.turn(7200)
        self.client.terminate(id)
        self.turn(7200)
        m, unit_s = self.machine(id), self.fake.state()["billing"]["unit_s"]
        self.assertTrue(2 * m["price"] * 0.999 <= m["bill"] <= m["price"] * (7205 + unit_s) / 3600, (m, unit_s))

    def test_disks_and_addresses_are_on_the_bill(self):
        """For as long as they are there, at what the gigabyte and the address cost."""
        self.fake.control("set", disk_price=73.0, address_price=0.01)
        id = self.client.create(token="t-1", tag="x")
        self.turn(7200)
        self.client.terminate(id)
        self.turn(7200)
        m, kind = self.machine(id), self.kind.name
        self.assertTrue(all(to - start < 7210 for rows in m["parts"].values() for start, to, _ in rows), m)
        for part, rows in m["parts"].items():
            hours = sum((to - start) / 3600 * price for start, to, price in rows)
            self.assertTrue(0 <= m["bills"][part] - hours < 2, (part, m))
        sized = [price for _, _, price in m["parts"]["disk"] if price]
        self.assertTrue(all(round(price) % 100_000 == 0 for price in sized), sized)  # whole gigabytes
        self.equal(bool(sized), kind not in ("lambda", "kubernetes"), (kind, m))
        self.assertTrue(all(price == 10_000 for _, _, price in m["parts"]["address"]), m)
        self.equal(m["bills"]["machine"], m["bill"])

    def test_junk_is_refused(self):
        """Whatever stands in the place of a parameter, there is an answer, and the fake lives on."""
        fake, seen = self.fake.server.fake, []
        parse = fake.parse
        fake.parse = lambda request: seen.append(request) or parse(request)
        self.client.create(token="t-1", tag="x")
        create, headers = seen[-1], {k: v for k, v in seen[-1].headers.items() if k.lower() != "content-length"}
        fake.world.recall = lambda *_: None
        fake.verify = lambda request: None
        statuses = set()
        for target, body in junk(create):
            status, _, text = self.fake.send(create.method, target, headers, body)
            statuses.add(status)
            self.assertNotIn(b"Traceback", text)
        self.assertTrue(len(statuses) > 1 or self.kind.name == "tencent", statuses)
        self.assertTrue(self.fake.state()["calls"][-1]["operation"], create.path)

    def test_in_a_process_of_its_own(self):
        """It tells where it is, is the same for a seed, and ends with its parent."""
        fakes = [FakeProcess(self.kind.name, "--seed", seed) for seed in (7, 7, 8)]
        try:
            client = self.kind(fakes[0], **fakes[0].env)
            self.equal(client.list("x"), [])
            self.assertTrue(all(s and s not in json.dumps(fakes[0].settings) for s in fakes[0].secrets))
            self.assertTrue(fakes[0].secrets == fakes[1].secrets != fakes[2].secrets)
        finally:
            for fake in fakes:
                fake.close()
        self.equal([f.process.returncode for f in fakes], [0, 0, 0])

    def test_what_only_it_has(self):
        self.client.special(self)


class Tls(unittest.TestCase):

    def test_a_certificate_of_its_own(self):
        """A client that does not trust it refuses it; one that does gets answers."""
        fake = FakeProcess("aws", "--tls")
        try:
            url = fake.settings["endpoints"]["ec2"] + "/_fake/state"
            with self.assertRaises(urllib.error.URLError) as got:
                urllib.request.urlopen(url, timeout=20)
            self.assertIn("CERTIFICATE_VERIFY_FAILED", str(got.exception))
            known = ssl.create_default_context(cafile=fake.told["ca"])
            self.assertEqual(json.load(urllib.request.urlopen(url, timeout=20, context=known))["provider"], "aws")
        finally:
            fake.close()


def places(value, path=()):
    """The path of everything in a JSON value."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield path + (key, )
        yield from places(part, path + (key, ))


def junk(request):
    """(target, body) of a create with something else in the place of each parameter."""
    if request.body[:1] == b"{":
        for path in places(json.loads(request.body)):
            for wrong in (None, [], {}, "x", -1, 1.5, True, ["x"], {"x": {}}, [{"x": "y"}]):
                body = at = json.loads(request.body)
                for key in path[:-1]:
                    at = at[key]
                at[path[-1]] = wrong
                yield request.target, json.dumps(body).encode()
        return
    pairs = urllib.parse.parse_qsl(request.body.decode() or request.raw_query, keep_blank_values=True)
    for n in range(len(pairs)):
        for key, wrong in ((pairs[n][0], ""), (pairs[n][0], "x"), (pairs[n][0], "-1"), (pairs[n][0] + ".1", "x"),
                           ("x", "y")):
            text = urllib.parse.urlencode(pairs[:n] + [(key, wrong)] + pairs[n + 1:])
            yield (request.target, text.encode()) if request.body else (request.path + "?" + text, b"")


def load(suite, loader, names):
    for name in names:
        module = importlib.import_module(f"client_{name}")
        kind = getattr(module, name.capitalize())
        case = type(kind.__name__, (Case, ), dict(kind=kind))
        suite.addTests(loader.loadTestsFromTestCase(case))


if __name__ == "__main__":
    suite, loader = unittest.TestSuite(), unittest.TestLoader()
    load(suite, loader, sys.argv[1:] or NAMES)
    if not sys.argv[1:]:
        suite.addTests(loader.loadTestsFromName("known_answers"))
        suite.addTests(loader.loadTestsFromTestCase(Tls))
    sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())
