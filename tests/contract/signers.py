#!/usr/bin/env python3
"""Random requests, signed by Rille (sign_tool.cpp) and once more by the formulas of the fakes (fakes/signatures.py):
the signatures agree. sdk/sdk_signers.py asks the vendors' own signers, too.

usage: signers.py SIGN_TOOL [COUNT]
"""
import base64, json, random, subprocess, sys, unittest, urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "fakes"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "stores"))
import signatures  # noqa: E402
import store_signatures  # noqa: E402

del sys.path[:2]
LETTERS = "abcXYZ019-_.~ +*/=&%?#:;,!'()[]{}\"\\\té\u4e2d\u6587ß\U0001f600"
PLAIN = "abcdefgXYZ0189"


class Tool:
    """Rille's signers in a process of their own, which ends with this one."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def sign(self, request):
        """(url, headers)"""
        bytes = dict(request, body={"$bytes": base64.b64encode(request["body"]).decode()})
        self.process.stdin.write(json.dumps(bytes).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return answer["url"], [tuple(pair) for pair in answer["headers"]]

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


class Dice(random.Random):

    def word(self, letters=LETTERS, least=0, most=20):
        return "".join(self.choice(letters) for _ in range(self.randrange(least, most)))

    def name(self, more=""):
        return self.word(PLAIN + more, 1)

    def secret(self):
        return self.word("abcdXYZ0189+/", 16, 41)

    def query(self, name, repeated=False):
        pairs = [(name(), self.word()) for _ in range(self.randrange(6))]
        if repeated and pairs:
            pairs += [(self.choice(pairs)[0], self.word()) for _ in range(self.randrange(3))]
        unique = pairs if repeated else list(dict(pairs).items())
        self.shuffle(unique)
        return unique

    def body(self):
        kind = self.randrange(4)
        if kind == 0:
            return b""
        if kind == 1:
            return self.randbytes(self.randrange(200))
        return (self.word() * (1 if kind == 2 else self.randrange(2000))).encode()

    def header(self):
        """A value as a header may have one: with spaces around and inside."""
        return self.choice(["", " "]) + self.word().replace("\t", "  ") + self.choice(["", "  "])

    def path(self, dots):
        segments = [urllib.parse.quote(self.word(), safe="-_.~") for _ in range(self.randrange(4))]
        if dots and self.random() < 0.3:
            segments.insert(self.randrange(len(segments) + 1), self.choice(["..", ".", "", "..", ""]))
        segments = [s for s in segments if dots or s not in (".", "..")]
        return "/" + "/".join(segments)

    def key(self):
        """The path of an object: a slash of its key, of which there may be two in a row, is a slash."""
        return "/" + urllib.parse.quote("/".join(self.word() for _ in range(self.randrange(4))), safe="-_.~/")

    def request(self, **more):
        """What every vendor's has."""
        host = self.name().lower() + self.choice([".example.com", ".example.com:8443", ""])
        return dict(
            dict(method=self.choice(["GET", "POST", "PUT", "DELETE"]), host=host, path="/", query=[], headers=[],
                 body=self.body(), id=self.name(), secret=self.secret(), token=self.choice(["", self.secret()]),
                 time_us=self.randrange(10**15, 4 * 10**15)), **more)


def aws(dice):
    service = dice.choice(["ec2", "sts", "pricing", "s3"])
    query = dice.query(lambda: dice.word(LETTERS, 1), repeated=True)
    if query and dice.random() < 0.3:
        query[0] = (query[0][0], None)
    headers = [("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")] * dice.randrange(2)
    for _ in range(dice.randrange(3)):
        name = "X-Amz-Meta-" + dice.name()
        headers += [(name, dice.header()) for _ in range(dice.choice([1, 1, 2]))]
    return dice.request(vendor="aws", service=service, region=dice.name("-"), query=query, headers=headers,
                        path=dice.path(service != "s3"))


def alibaba(dice):
    headers = [("Content-Type", "application/json")] * dice.randrange(2)
    headers += [("x-acs-" + dice.name().lower(), dice.header()) for _ in range(dice.randrange(3))]
    if headers:
        headers += [(dice.choice(headers)[0], dice.header())] * dice.randrange(2)
    return dice.request(vendor="alibaba", action=dice.name(), version="2014-05-26", nonce=dice.name("-"),
                        query=dice.query(lambda: dice.name(".-_~")), headers=headers)


def alibaba_rpc(dice):
    query = dice.query(lambda: dice.word(LETTERS, 1)) + [("Format", "JSON"), ("SignatureType", "")]
    return dice.request(vendor="alibaba_rpc", action=dice.name(), version="2014-05-26", nonce=dice.word(),
                        method=dice.choice(["GET", "POST"]), query=query, body=b"")


def tencent(dice):
    get = dice.random() < 0.3
    kind = "application/x-www-form-urlencoded" if get else dice.choice(
        ["application/json", "application/json; charset=utf-8"])
    body = b"" if get else json.dumps(dict(dice.query(lambda: dice.word(LETTERS, 1))),
                                      ensure_ascii=dice.random() < 0.5).encode()
    return dice.request(vendor="tencent", method="GET" if get else "POST", service="cvm", version="2017-03-12",
                        action=dice.name().capitalize(), region=dice.choice(["", "ap-guangzhou"]), body=body,
                        query=dice.query(dice.name, repeated=True) if get else [], headers=[("Content-Type", kind)])


def huawei(dice):
    headers = [("Content-Type", "application/json")] * dice.randrange(2)
    headers += dict(("X-" + dice.name("-_"), dice.header()) for _ in range(dice.randrange(3))).items()  # each once
    derived = dice.random() < 0.3
    return dice.request(vendor="huawei", query=dice.query(lambda: dice.word(LETTERS, 1), repeated=True),
                        headers=headers, path=dice.path(False),
                        **(dict(region=dice.name("-"), service=dice.name()) if derived else {}))


def sas_terms(dice):
    lent = dict(oid=dice.name("-"), tid=dice.name("-"), start="2026-01-02T03:04:05Z", expiry="2026-01-09T03:04:05Z",
                service="b", version="2021-12-02")
    return dict(rights=dice.choice(["r", "cw"]), https_only=dice.random() < 0.5, lent=lent,
                from_us=dice.choice([0, dice.randrange(10**15, 4 * 10**15)]))


def store(vendor, prefix):
    """Requests to an object store: keys in the path, subresources, headers of the vendor's own."""

    def value(dice):
        text = dice.header()
        return text.encode("ascii", "ignore").decode() if vendor == "google_url" else text  # its SDK refuses others

    def name(dice):
        # Google's SDK sorts "a0=" before "a=": of names of one length there is one order.
        return dice.word(PLAIN, 3, 4) if vendor == "google_url" else dice.name("-").lower()

    def make(dice):
        headers = [("Content-Type", "text/plain")] * dice.randrange(2)
        headers += dict((prefix + dice.name().lower(), value(dice)) for _ in range(dice.randrange(3))).items()
        in_url, azure = vendor.endswith("_url"), vendor.startswith("azure")
        secret = dice.secret() if not azure else base64.b64encode(dice.randbytes(32)).decode()
        query = dice.query(lambda: name(dice))
        if query and dice.random() < 0.3:
            query[0] = (query[0][0], dice.choice([None, ""]))
        made = dice.request(vendor=vendor, region=dice.name("-").lower(), bucket=dice.name("-").lower(), secret=secret,
                            path=dice.key(), query=query, headers=headers, body=b"" if in_url else dice.body(),
                            token="" if azure else dice.choice(["", dice.secret()]),
                            expires_s=dice.randrange(1, 604800))
        return dict(made, **sas_terms(dice)) if azure and in_url else made

    return make


STORES = dict(oss="x-oss-meta-", oss_url="x-oss-meta-", cos="x-cos-meta-", cos_url="x-cos-meta-", azure="x-ms-meta-",
              azure_sas_url="x-ms-meta-", azure_lent_url="x-ms-meta-", aws_url="x-amz-meta-", obs="x-amz-meta-",
              obs_url="x-amz-meta-", google_url="x-goog-meta-")
VENDORS = dict(aws=aws, alibaba=alibaba, alibaba_rpc=alibaba_rpc, tencent=tencent, huawei=huawei,
               **{name: store(name, prefix) for name, prefix in STORES.items()})


# A part that is not in a vendor's signature; of google_url the text before the signature is compared.
NOT_SIGNED = {("alibaba_rpc", "host"), ("oss", "host"), ("oss_url", "host"), ("azure", "host"),
              ("google_url", "secret")}
NOT_SIGNED |= {(vendor, part) for vendor in ("azure_sas_url", "azure_lent_url") for part in ("host", "method", "query")}


def requests(vendor, count, seed=5):
    dice = Dice(seed)
    return (VENDORS[vendor](dice) for _ in range(count))


def header(headers, name):
    return next((v for k, v in headers if k.lower() == name), "")


def split(url):
    """(path, query) as they go over the wire."""
    path, _, query = url[url.index("/", len("http://")):].partition("?")
    return path, query


def of_store(request, url, headers):
    """As by_formula, of STORES."""
    path, query = split(url)
    vendor, secret, method = request["vendor"], request["secret"], request["method"]
    headers = headers + [("Host", request["host"])]
    pairs, authorization = store_signatures.pairs_of(query), header(headers, "authorization")
    asked = dict(pairs)
    if vendor.startswith("oss"):
        date = asked["x-oss-date"] if vendor == "oss_url" else header(headers, "x-oss-date")
        pairs = [p for p in pairs if p[0] != "x-oss-signature"]
        return store_signatures.oss4(method, f"/{request['bucket']}{path}", pairs, headers, [], date, request["region"],
                                     secret)
    if vendor.startswith("cos"):
        fields = dict(f.split("=", 1) for f in authorization.split("&")) if vendor == "cos" else asked
        if any(k not in fields["q-url-param-list"].split(";") for k, _ in pairs if not k.startswith("q-")):
            return "COS refuses what is not signed"
        return store_signatures.cos(method, path, [p for p in pairs if not p[0].startswith("q-")], headers,
                                    fields["q-header-list"].split(";"), fields["q-url-param-list"].split(";"),
                                    fields["q-sign-time"], secret)
    if vendor in ("azure_sas_url", "azure_lent_url"):
        key = urllib.parse.unquote(path[1:])
        return store_signatures.azure_sas(asked, f"/blob/{request['id']}/{request['bucket']}/{key}", secret,
                                          vendor == "azure_lent_url")
    if vendor == "obs":
        return signatures.sigv4(method, path, query, headers,
                                authorization.partition("SignedHeaders=")[2].partition(",")[0].split(";"),
                                "UNSIGNED-PAYLOAD", header(headers, "x-amz-date"), request["region"], "s3", secret)[1]
    if vendor == "azure":
        return store_signatures.azure_key(method, path, pairs, headers, request["id"], secret, len(request["body"]))
    if vendor == "google_url":
        text = store_signatures.google4_text(method, path, [p for p in pairs if p[0] != "X-Goog-Signature"], headers,
                                             asked["X-Goog-SignedHeaders"].split(";"), asked["X-Goog-Date"])
        return signatures.sha256(text)
    query = "&".join(p for p in query.split("&") if not p.startswith("X-Amz-Signature="))
    return signatures.sigv4(method, path, query, headers, asked["X-Amz-SignedHeaders"].split(";"), "UNSIGNED-PAYLOAD",
                            asked["X-Amz-Date"], request["region"], "s3", secret)[1]


def by_formula(request, url, headers):
    """The signature that signatures.py finds for what Rille has made of a request."""
    if request["vendor"] in STORES:
        return of_store(request, url, headers)
    path, query = split(url)
    secret, payload = request["secret"], signatures.sha256(request["body"])
    headers = headers + [("Host", request["host"])]
    authorization = header(headers, "authorization")
    signed = authorization.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    method, vendor = request["method"], request["vendor"]
    if vendor == "aws":
        return signatures.sigv4(method, path, query, headers, signed, payload, header(headers, "x-amz-date"),
                                request["region"], request["service"], secret)[1]
    if vendor == "alibaba":
        return signatures.alibaba_acs3(method, path, query, headers, signed, payload, secret)[1]
    if vendor == "alibaba_rpc":
        return signatures.alibaba_rpc(method, signatures.pairs_of(query), secret)[1]
    if vendor == "tencent":
        date = authorization.partition("Credential=")[2].split("/")[1]
        return signatures.tencent_tc3(method, query, headers, signed, payload, header(headers, "x-tc-timestamp"), date,
                                      request["service"], secret)[1]
    scope = "/".join(authorization.partition("Credential=")[2].partition(",")[0].split("/")[1:])
    return signatures.huawei(method, path, query, headers, signed, payload, header(headers, "x-sdk-date"), secret,
                             request["id"], scope)[1]


def signature_of(url, headers):
    """The one that Rille has made."""
    if authorization := header(headers, "authorization"):
        if authorization.startswith("SharedKey "):
            return authorization.rpartition(":")[2]
        return authorization.rpartition("ignature=")[2]
    asked = dict(signatures.pairs_of(split(url)[1]))
    return next(v for k, v in asked.items() if k.lower().endswith("signature") or k == "sig")


class Signers(unittest.TestCase):
    tool, count = None, 300

    def test(self):
        for vendor in VENDORS:
            for request in requests(vendor, self.count):
                with self.subTest(vendor=vendor):
                    url, headers = self.tool.sign(request)
                    self.assertEqual(signature_of(url, headers), by_formula(request, url, headers), request)

    def test_what_differs_is_seen(self):
        """A comparison that cannot fail would be none: each part of a request is in its signature."""
        for vendor in VENDORS:
            request = next(r for r in requests(vendor, 1000) if r["query"] and r["method"] == "GET" and not r["body"])
            url, headers = self.tool.sign(request)
            right = by_formula(request, url, headers)
            for part, other in (("secret", "otherkey"), ("method", "POST"), ("host", "other.example.com")):
                if (vendor, part) not in NOT_SIGNED:
                    self.assertNotEqual(by_formula(dict(request, **{part: other}), url, headers), right, (vendor, part))
            if (vendor, "query") not in NOT_SIGNED:
                self.assertNotEqual(by_formula(request, url.replace("?", "?x=1&"), headers), right, vendor)


if __name__ == "__main__":
    Signers.tool = Tool(sys.argv[1])
    Signers.count = int((sys.argv[2:] or [300])[0])
    try:
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(Signers)
        well = unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful()
    finally:
        Signers.tool.close()
    sys.exit(not well)
