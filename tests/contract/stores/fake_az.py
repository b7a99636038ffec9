"""Azure Blob Storage as a scripted fake (fake_store.py): block blobs under /ACCOUNT/CONTAINER/KEY, as with a host that
is an address; the account's key, tokens, and SAS by the account's key or by a lent one."""
import base64, calendar, email.utils, json, time, urllib.parse
from xml.sax.saxutils import escape

import store_signatures as own
from fake_store import S3, Refusal, Reply

ACCOUNT, KEY, LENT = "store", base64.b64encode(b"account key of 32 bytes, or so..").decode(), \
    base64.b64encode(b"lent key").decode()


class Az(S3):
    """`way`: "key", "token" or "sas"."""
    scheme = "az"
    REFUSALS = dict(throttle=(503, "ServerBusy", "The server is busy."),
                    denied=(403, "AuthorizationPermissionMismatch", "Not authorized with this permission."),
                    expired=(401, "InvalidAuthenticationInfo", "The token is expired."))

    def __init__(self, way="key"):
        super().__init__()
        self.way = way

    def environment(self):
        if self.way == "key":
            return dict(AZURE_STORAGE_KEY=KEY)
        if self.way == "sas":
            return dict(AZURE_STORAGE_SAS_TOKEN="?sv=2021-12-02&ss=b&sig=a%2Bb%3D")
        return dict(AZURE_TENANT_ID="tenant", AZURE_CLIENT_ID="client", AZURE_CLIENT_SECRET="secret")

    def settings(self):
        return dict(azure=dict(endpoints=dict(blob=self.endpoint, login=self.endpoint)))

    def url(self, key="", region=None):
        return f"az://{ACCOUNT}/{self.bucket}/{key}"

    def aside(self, request):
        if not request.path.endswith("/oauth2/v2.0/token"):
            return None
        form = dict(urllib.parse.parse_qsl(request.body.decode()))
        assert form["scope"] == "https://storage.azure.com/.default", form
        self.tokens += 1
        return Reply(200, json.dumps(dict(access_token=f"token-{self.tokens}", expires_in=3600)))

    def render(self, refusal, request):
        headers = dict({"x-ms-error-code": refusal.code, "Content-Type": "application/xml"},
                       **refusal.more.get("headers", {}))
        return Reply(refusal.status, "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?><Error>"
                     f"<Code>{refusal.code}</Code><Message>{escape(refusal.message)}\nRequestId:r\nTime:t"
                     "</Message></Error>", headers)

    def operation(self, request):
        account, _, rest = request.path[1:].partition("/")
        assert account == ACCOUNT, request.path
        request.bucket, _, key = rest.partition("/")
        key = urllib.parse.unquote(key)
        comp = request.asked.get("comp")
        if comp == "userdelegationkey":
            return "lend", ""
        if comp in ("list", "block", "blocklist"):
            return dict(list="list", block="part", blocklist="complete")[comp], key
        return dict(GET="get", HEAD="head", PUT="put", DELETE="delete")[request.method], key

    def perform(self, op, key, request):
        if op == "lend":
            return self.lend(request)
        if request.bucket != self.bucket:
            raise Refusal(404, "ContainerNotFound", "The specified container does not exist.")
        return getattr(self, "do_" + op)(key, request)

    def verify(self, request):
        asked, word = request.asked, request.header("authorization")
        if "sig" in asked:
            return self.verify_sas(request) if self.way != "sas" else self.expect("a+b=", asked["sig"])
        assert request.header("x-ms-version") == "2021-12-02"
        if word.startswith("Bearer "):
            if word.removeprefix("Bearer ") in self.dead or self.way != "token":
                raise Refusal(401, "InvalidAuthenticationInfo", "Server failed to authenticate the request.")
            return None
        if abs(calendar.timegm(email.utils.parsedate(request.header("x-ms-date"))) - self.now()) > 900:
            raise Refusal(403, "AuthenticationFailed", "Server failed to authenticate the request.")
        right = own.azure_key(request.method, request.path, request.pairs, request.headers, ACCOUNT, KEY,
                              len(request.body))
        if word != f"SharedKey {ACCOUNT}:{right}":
            raise Refusal(403, "AuthenticationFailed", "Server failed to authenticate the request.")

    def verify_sas(self, request):
        sas = request.asked
        if calendar.timegm(time.strptime(sas["se"], "%Y-%m-%dT%H:%M:%SZ")) < self.now():
            raise Refusal(403, "AuthenticationFailed", "Signature not valid in the specified time frame")
        lent = "skoid" in sas
        resource = f"/blob/{ACCOUNT}" + urllib.parse.unquote(request.path.removeprefix(f"/{ACCOUNT}"))
        right = own.azure_sas(sas, resource, LENT if lent else KEY, lent)
        needed = "r" if request.method in ("GET", "HEAD") else "w"
        if sas["sig"] != right or needed not in sas["sp"]:
            raise Refusal(403, "AuthenticationFailed", "Signature did not match.")

    def lend(self, request):
        text = request.body.decode()
        start, end = (text.partition(f"<{n}>")[2].partition("<")[0] for n in ("Start", "Expiry"))
        rows = dict(SignedOid="o", SignedTid="t", SignedStart=start, SignedExpiry=end, SignedService="b",
                    SignedVersion="2021-12-02", Value=LENT)
        return Reply(200, "<UserDelegationKey>" + "".join(f"<{k}>{v}</{k}>" for k, v in rows.items()) +
                     "</UserDelegationKey>")

    def find(self, key):
        if key not in self.objects:
            raise Refusal(404, "BlobNotFound", "The specified blob does not exist.")
        return self.objects[key]

    def do_list(self, _, request):
        asked = request.asked
        keys, prefixes, token = self.rows(asked.get("prefix") or "", asked.get("delimiter") or "",
                                          asked.get("marker") or "", min(int(asked.get("maxresults", 5000)),
                                                                         self.page_max))
        out = ['<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>']
        for key in keys:
            o = self.objects[key]
            # As Azure does with names that XML cannot have.
            hard = any(c in key for c in "\x01\x02\ufffe")
            name = f'<Name Encoded="true">{urllib.parse.quote(key)}</Name>' if hard else f"<Name>{escape(key)}</Name>"
            out.append(f"<Blob>{name}<Properties><Last-Modified>{email.utils.formatdate(o.modified, usegmt=True)}"
                       f"</Last-Modified><Etag>{escape(o.etag.strip(chr(34)))}</Etag><Content-Length>{len(o.data)}"
                       "</Content-Length></Properties></Blob>")
        out += [f"<BlobPrefix><Name>{escape(p)}</Name></BlobPrefix>" for p in prefixes]
        token = "again" if self.repeat_token else token
        return Reply(200, "".join(out) + f"</Blobs><NextMarker>{escape(token)}</NextMarker></EnumerationResults>")

    def conditions(self, key, request):
        if request.header("if-none-match") and key in self.objects:
            raise Refusal(409, "BlobAlreadyExists", "The specified blob already exists.")
        self.check_match(key, request.header("if-match"), "", "ConditionNotMet")

    def do_put(self, key, request):
        assert request.header("x-ms-blob-type") == "BlockBlob"
        return Reply(201, b"", super().do_put(key, request).headers)

    def do_delete(self, key, request):
        self.find(key)
        del self.objects[key]
        return Reply(202)

    def do_part(self, key, request):
        self.uploads.setdefault(key, {})[request.asked["blockid"]] = request.body
        return Reply(201)

    def do_complete(self, key, request):
        self.conditions(key, request)
        blocks, names = self.uploads.get(key, {}), []
        for row in request.body.decode().split("<Latest>")[1:]:
            names.append(row.partition("<")[0])
            if names[-1] not in blocks:
                raise Refusal(400, "InvalidBlockList", "The specified block list is invalid.")
        o = self.add(key, b"".join(blocks[n] for n in names), request.header("x-ms-blob-content-type"))
        self.uploads.pop(key)
        return Reply(201, b"", {"ETag": o.etag})
