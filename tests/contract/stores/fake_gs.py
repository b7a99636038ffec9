"""Google Cloud Storage as a scripted fake (fake_store.py): the JSON interface with bearer tokens, the XML interface for
parts, signed URLs of version 4, and the service that signs for those who have no key."""
import base64, json, os, tempfile, time, urllib.parse
from pathlib import Path

import rsa_key
import signatures
import store_signatures as own
from fake_store import S3, Refusal, Reply

ACCOUNT = "robot@project.iam.gserviceaccount.com"


class Gs(S3):
    """`local_key`: the key file has a private key; otherwise the file of a workload that may sign as the account."""
    scheme = "gs"
    REFUSALS = dict(throttle=(429, "rateLimitExceeded", "The rate limit is exceeded."),
                    denied=(403, "forbidden", "robot does not have storage.objects.get access."),
                    expired=(401, "authError", "Invalid Credentials"))

    def __init__(self, local_key=True):
        super().__init__()
        self.key = rsa_key.RsaKey(1)
        self.folder = tempfile.TemporaryDirectory(prefix="rille-gs-")
        self.file, local_token = os.path.join(self.folder.name, "key.json"), os.path.join(self.folder.name, "token")
        Path(local_token).write_text("subject")
        account = dict(type="service_account", client_email=ACCOUNT, private_key=self.key.pem, private_key_id="k",
                       token_uri=self.endpoint + "/_token")
        workload = dict(type="external_account", audience="//iam/x",
                        subject_token_type="urn:ietf:params:oauth:token-type:jwt", token_url=self.endpoint + "/_token",
                        credential_source=dict(file=local_token),
                        service_account_impersonation_url=f"{self.endpoint}/v1/projects/-/serviceAccounts/{ACCOUNT}"
                        ":generateAccessToken")
        Path(self.file).write_text(json.dumps(account if local_key else workload))

    def close(self):
        super().close()
        self.folder.cleanup()

    def environment(self):
        return dict(GOOGLE_APPLICATION_CREDENTIALS=self.file)

    def settings(self):
        return dict(gcp=dict(endpoints=dict(storage=self.endpoint, iamcredentials=self.endpoint)))

    def url(self, key="", region=None):
        return f"gs://{self.bucket}/{key}"

    def aside(self, request):
        path = urllib.parse.unquote(request.path)
        if path == "/_token":
            self.tokens += 1
            return Reply(200, json.dumps(dict(access_token=f"token-{self.tokens}", expires_in=3600)))
        if path.endswith(":generateAccessToken"):
            self.tokens += 1
            end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
            return Reply(200, json.dumps(dict(accessToken=f"token-{self.tokens}", expireTime=end)))
        if path == f"/v1/projects/-/serviceAccounts/{ACCOUNT}:signBlob":
            self.check_token(request)
            text = base64.b64decode(json.loads(request.body)["payload"])
            signed = signatures.rs256_sign(text, self.key.modulus, self.key.private)
            return Reply(200, json.dumps(dict(keyId="k", signedBlob=base64.b64encode(signed).decode())))
        return None

    def render(self, refusal, request):
        if not request.path.startswith(("/storage/", "/upload/")):
            return super().render(refusal, request)
        error = dict(code=refusal.status, message=refusal.message, errors=[dict(reason=refusal.code)])
        return Reply(refusal.status, json.dumps(dict(error=error)), refusal.more.get("headers", {}))

    def operation(self, request):
        request.json = True
        parts = request.path.split("/")
        if request.path.startswith("/upload/storage/v1/b/"):
            request.bucket = parts[5]
            return "put", request.asked["name"]
        if request.path.startswith("/storage/v1/b/"):
            request.bucket = parts[4]
            if len(parts) == 6:
                return "list", ""
            assert len(parts) == 7, request.path  # the key's slashes are encoded
            kind = "get" if request.asked.get("alt") == "media" else "head"
            return "delete" if request.method == "DELETE" else kind, urllib.parse.unquote(parts[6])
        request.json = False
        return super().operation(request)

    def check_token(self, request):
        word = request.header("authorization").removeprefix("Bearer ")
        if word in self.dead or not word.startswith("token-"):
            raise Refusal(401, "authError", "Invalid Credentials")

    def verify(self, request):
        asked = request.asked
        if "X-Goog-Signature" not in asked:
            return self.check_token(request)
        if self.near_start(asked["X-Goog-Date"]) + int(asked["X-Goog-Expires"]) < self.now():
            raise Refusal(400, "ExpiredToken", "Invalid argument.")
        account, day, *scope = asked["X-Goog-Credential"].split("/")
        assert (account, scope) == (ACCOUNT, ["auto", "storage", "goog4_request"]), asked
        signed = asked["X-Goog-SignedHeaders"].split(";")
        assert "host" in signed
        pairs = [p for p in request.pairs if p[0] != "X-Goog-Signature"]
        text = own.google4_text(request.method, request.path, pairs, request.headers, signed, asked["X-Goog-Date"])
        if not signatures.rs256_verify(text.encode(), bytes.fromhex(asked["X-Goog-Signature"]), self.key.modulus,
                                       rsa_key.EXPONENT):
            raise Refusal(403, "SignatureDoesNotMatch", "Access denied.")

    def perform(self, op, key, request):
        if request.bucket != self.bucket:
            raise Refusal(404, "notFound", "The specified bucket does not exist.")
        return super().perform(op, key, request)

    def find(self, key):
        if key not in self.objects:
            raise Refusal(404, "notFound", f"No such object: {self.bucket}/{key}")
        return self.objects[key]

    def conditions(self, key, request):
        wanted, there = request.asked.get("ifGenerationMatch"), self.objects.get(key)
        wanted = request.header("x-goog-if-generation-match") or wanted
        if wanted is not None and int(wanted) != (there.version if there else 0):
            raise Refusal(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")

    def row(self, key):
        o = self.objects[key]
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.123Z", time.gmtime(o.modified))
        return dict(name=key, size=str(len(o.data)), generation=str(o.version), updated=stamp, contentType=o.type)

    def do_list(self, _, request):
        asked = request.asked
        keys, prefixes, token = self.rows(asked.get("prefix") or "", asked.get("delimiter") or "",
                                          asked.get("pageToken") or "", min(int(asked.get("maxResults", 1000)),
                                                                            self.page_max))
        out = dict(kind="storage#objects", items=[self.row(k) for k in keys], prefixes=prefixes)
        if token or self.repeat_token:
            out["nextPageToken"] = "again" if self.repeat_token else token
        return Reply(200, json.dumps(out), {"Content-Type": "application/json"})

    def do_head(self, key, request):
        if not request.json:
            return super().do_head(key, request)
        self.find(key)
        return Reply(200, json.dumps(self.row(key)))

    def do_get(self, key, request):
        self.find(key)
        self.conditions(key, request)
        return self.ranged(self.find(key), request, {"x-goog-generation": str(self.find(key).version)})

    def do_put(self, key, request):
        self.conditions(key, request)
        self.add(key, request.body, request.header("content-type"))
        return Reply(200, json.dumps(self.row(key)) if request.json else b"",
                     {"x-goog-generation": str(self.objects[key].version)})

    def do_complete(self, key, request):
        assert not request.header("if-none-match")
        reply = super().do_complete(key, request)
        return Reply(reply.status, reply.body, {"x-goog-generation": str(self.objects[key].version)}) \
            if key in self.objects else reply
