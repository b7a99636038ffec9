"""A scripted fake of an object store: objects, uploads in parts and lists in memory, on a free port of 127.0.0.1, in a
thread of the test. Each request's signature is verified (store_signatures.py). S3 and its kin are here (S3, Oss, Cos,
Obs), Google and Azure in fake_gs.py and fake_az.py.

A fault is dict(kind=.., op=.., times=1): throttle (without effect), error_after and drop_after (with effect), cut (of a
get, after `bytes` bytes), silent (headers and half of the bytes, then nothing), denied, expired, change (the object has
another version once a get was cut)."""
import calendar, email.utils, hashlib, http.server, socketserver, sys, threading, time, urllib.parse
from xml.sax.saxutils import escape

import signatures
import store_signatures as own

ID, SECRET, BUCKET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "bucket", "eu-north-1"


class Refusal(Exception):

    def __init__(self, status, code, message="", **more):
        super().__init__(code)
        self.status, self.code, self.message, self.more = status, code, message or code + " is what it is", more


class Reply:

    def __init__(self, status=200, body=b"", headers=()):
        self.status, self.body, self.headers = status, body if isinstance(body, bytes) else body.encode(), dict(headers)


class Object:

    def __init__(self, data, type, version):
        self.data, self.type, self.modified = data, type, time.time()
        self.version, self.etag = version, f'"{hashlib.md5(data).hexdigest()}-{version}"'


class Request:

    def __init__(self, handler):
        self.method, self.headers = handler.command, list(handler.headers.items())
        self.client = handler.client_address
        self.path, _, self.query = handler.path.partition("?")
        self.pairs = own.pairs_of(self.query)
        self.asked = dict(self.pairs)
        self.body = handler.rfile.read(int(self.header("content-length") or 0))

    def header(self, name):
        return own.one(self.headers, name)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, timeout = "HTTP/1.1", 60
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_any(self):
        request = Request(self)
        reply, fault = self.server.store.answer(request)
        if reply is None:
            self.close_connection = True
            return
        body = reply.body
        self.send_response_only(reply.status)
        store = self.server.store
        for name, value in dict({"Date": email.utils.formatdate(store.now(), usegmt=True),
                                 "Content-Length": str(len(body))}, **reply.headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        kind = fault.get("kind")
        if kind in ("cut", "change", "silent"):
            self.wfile.write(body[:fault.get("bytes", len(body) // 2)])
            self.wfile.flush()
            if kind == "silent":
                store.released.wait(30)
            self.close_connection = True
        else:
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_any


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads, request_queue_size = True, 64

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client that wants no more
            super().handle_error(request, client_address)


class Store:
    """What the fakes share; `bucket_path`: what a path begins with."""
    scheme, page_max, bucket, without = "", 1000, BUCKET, ()
    address, partial = "127.0.0.1", 206  # partial: the status of a range

    def settings(self):
        return {}

    def __init__(self):
        self.objects, self.uploads, self.faults, self.calls = {}, {}, [], []
        self.offset, self.count, self.lock, self.released = 0, 0, threading.RLock(), threading.Event()
        self.dead, self.tokens, self.repeat_token = set(), 0, False  # expired keys; lists that go in a circle
        self.server = Server((self.address, 0), Handler)
        self.server.store = self
        self.host = f"{self.address}:{self.server.server_port}"
        self.endpoint = "http://" + self.host
        threading.Thread(target=self.server.serve_forever, args=(0.05, ), daemon=True).start()

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def now(self):
        return time.time() + self.offset

    def add(self, key, data=b"x", type="application/octet-stream"):
        self.count += 1
        self.objects[key] = Object(data, type, self.count)
        return self.objects[key]

    def fault(self, kind, op, times=1, **more):
        self.faults.append(dict(kind=kind, op=op, times=times, **more))

    def take(self, kinds, op):
        for fault in self.faults:
            if fault["times"] > 0 and fault["kind"] in kinds and fault["op"] in ("*", op):
                fault["times"] -= 1
                return fault
        return None

    def answer(self, request):
        with self.lock:
            op = "?"
            try:
                if (other := self.aside(request)) is not None:
                    return other, {}
                op, key = self.operation(request)
                self.calls.append((op, key))
                before = self.take(("throttle", "denied", "expired"), op)
                if before:
                    raise self.refusal(before["kind"], before)
                self.verify(request)
                reply = self.perform(op, key, request)
                fault = self.take(("cut", "silent", "change"), op) if reply.status < 300 else None
                after = self.take(("error_after", "drop_after"), op)
                if after and after["kind"] == "drop_after":
                    return None, {}
                if after:
                    return self.render(Refusal(500, "InternalError", "We failed"), request), {}
                if fault and fault["kind"] == "change":
                    self.add(key, b"other" * 1000)
                return reply, fault or {}
            except Refusal as r:
                return self.render(r, request), {}

    def aside(self, request):
        """Requests that are not of the store, such as of its keys."""

    # What all can do with an object.

    def find(self, key):
        if key not in self.objects:
            raise Refusal(404, "NoSuchKey", "The specified key does not exist.")
        return self.objects[key]

    def ranged(self, object, request, headers):
        size, text = len(object.data), request.header("range")
        headers = dict({"Last-Modified": email.utils.formatdate(object.modified, usegmt=True), "ETag": object.etag,
                        "Content-Type": object.type, "Accept-Ranges": "bytes"}, **headers)
        if not text:
            return Reply(200, object.data, headers)
        first, last = text.removeprefix("bytes=").split("-")
        first, last = int(first), min(int(last or size - 1), size - 1)
        if first >= size:
            raise Refusal(416, "InvalidRange", "The requested range is not satisfiable")
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        return Reply(self.partial, object.data[first:last + 1], headers)

    def check_match(self, key, if_match, if_none_match, code="PreconditionFailed"):
        there = self.objects.get(key)
        if if_match and (not there or there.etag != if_match):
            raise Refusal(412, code, "At least one of the pre-conditions you specified did not hold")
        if if_none_match and there:
            raise Refusal(412, code, "At least one of the pre-conditions you specified did not hold")

    def rows(self, prefix, delimiter, after, count):
        """(keys, prefixes, token): a page of a list."""
        keys, prefixes, last = [], [], ""
        for key in sorted(self.objects, key=str.encode):
            if not key.startswith(prefix) or (after and key.encode() <= after.encode()):
                continue
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            name = key[:end + len(delimiter)] if end >= 0 else key
            if after and end >= 0 and name.encode() <= after.encode():
                continue
            if name in prefixes:
                continue
            if len(keys) + len(prefixes) == count:
                return keys, prefixes, last
            (prefixes if end >= 0 else keys).append(name)
            last = name if end < 0 else name + "\U0010ffff"
        return keys, prefixes, ""


class S3(Store):
    scheme, region, error_status = "s3", REGION, 400
    REFUSALS = dict(throttle=(503, "SlowDown", "Please reduce your request rate."),
                    denied=(403, "AccessDenied", "Access Denied"),
                    expired=(400, "ExpiredToken", "The provided token has expired."))

    def environment(self):
        return dict(AWS_ACCESS_KEY_ID=ID, AWS_SECRET_ACCESS_KEY=SECRET)

    def url(self, key="", region=None):
        return f"{self.scheme}://{self.bucket}/{key}?endpoint={self.endpoint}&region={region or self.region}"

    def refusal(self, kind, fault):
        status, code, message = self.REFUSALS[kind]
        headers = {"Retry-After": str(fault["retry_after"])} if "retry_after" in fault else {}
        return Refusal(status, code, message, headers=headers)

    def render(self, refusal, request):
        more = refusal.more
        inner = "".join(f"<{k}>{escape(v)}</{k}>" for k, v in more.get("elements", {}).items())
        text = (f'<?xml version="1.0"?><Error><Code>{refusal.code}</Code><Message>{escape(refusal.message)}</Message>'
                f"{inner}<RequestId>r-{len(self.calls)}</RequestId></Error>")
        return Reply(refusal.status, text, dict({"Content-Type": "application/xml"}, **more.get("headers", {})))

    def operation(self, request):
        bucket, _, key = request.path.removeprefix("/").partition("/")
        bucket, key = urllib.parse.unquote(bucket), urllib.parse.unquote(key)
        asked, method = request.asked, request.method
        if not key:
            op = "list"
        elif "uploads" in asked:
            op = "begin"
        elif "uploadId" in asked:
            op = dict(PUT="part", POST="complete", DELETE="abort")[method]
        else:
            op = dict(GET="get", HEAD="head", PUT="put", DELETE="delete")[method]
        request.bucket = bucket
        return op, key

    # Signatures.

    def near(self, stamp):
        told = calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ"))
        if abs(told - self.now()) > 900:
            raise Refusal(403, "RequestTimeTooSkewed", "The difference between the request time and the server's "
                          "time is too large.")
        return told

    def expect(self, right, told):
        if right != told:
            raise Refusal(403, "SignatureDoesNotMatch", "The request signature we calculated does not match.")

    def check_scope(self, credential):
        id, date, region, service, end = credential.split("/")
        if id != ID and not id.startswith("LENT"):
            raise Refusal(403, "InvalidAccessKeyId", "The access key ID you provided does not exist.")
        if region != self.region:
            raise Refusal(400, "AuthorizationHeaderMalformed", f"the region '{region}' is wrong; expecting "
                          f"'{self.region}'", elements=dict(Region=self.region),
                          headers={"x-amz-bucket-region": self.region})
        assert (service, end) == ("s3", "aws4_request"), credential

    def verify(self, request):
        asked = request.asked
        if "X-Amz-Signature" in asked:
            self.check_scope(asked["X-Amz-Credential"])
            date, told = asked["X-Amz-Date"], asked["X-Amz-Signature"]
            if self.near_start(date) + int(asked["X-Amz-Expires"]) < self.now():
                raise Refusal(403, "AccessDenied", "Request has expired")
            query = "&".join(p for p in request.query.split("&") if not p.startswith("X-Amz-Signature="))
            signed, payload = asked["X-Amz-SignedHeaders"].split(";"), "UNSIGNED-PAYLOAD"
        else:
            fields = dict(f.strip().split("=", 1) for f in
                          request.header("authorization").removeprefix("AWS4-HMAC-SHA256 ").split(","))
            self.check_scope(fields["Credential"])
            if (token := request.header("x-amz-security-token")) in self.dead:
                raise Refusal(400, "ExpiredToken", f"The provided token {token} has expired.")
            date, told, query = request.header("x-amz-date"), fields["Signature"], request.query
            self.near(date)
            signed, payload = fields["SignedHeaders"].split(";"), request.header("x-amz-content-sha256")
            assert {"host", "x-amz-date", "x-amz-content-sha256"} <= set(signed), signed
            if payload != "UNSIGNED-PAYLOAD" and payload != hashlib.sha256(request.body).hexdigest():
                raise Refusal(400, "XAmzContentSHA256Mismatch", "The body is another")
        self.expect(signatures.sigv4(request.method, request.path, query, request.headers, signed, payload, date,
                                     self.region, "s3", SECRET)[1], told)

    def near_start(self, stamp):
        return calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ"))

    # Operations.

    def perform(self, op, key, request):
        if request.bucket != self.bucket:
            raise Refusal(404, "NoSuchBucket", "The specified bucket does not exist")
        if len(key.encode()) > 1024:
            raise Refusal(400, "KeyTooLongError", "Your key is too long")
        return getattr(self, "do_" + op)(key, request)

    def do_list(self, _, request):
        asked = request.asked
        assert asked.get("list-type") == "2" or self.scheme in ("cos", "obs"), asked
        after = asked.get("continuation-token" if "list-type" in asked else "marker") or ""
        keys, prefixes, token = self.rows(asked.get("prefix") or "", asked.get("delimiter") or "", after,
                                          min(int(asked.get("max-keys", 1000)), self.page_max))
        quoted = asked.get("encoding-type") == "url"
        text = (lambda name: urllib.parse.quote_plus(name, safe="/")) if quoted else escape
        out = ["<ListBucketResult>", "<EncodingType>url</EncodingType>" if quoted else ""]
        for key in keys:
            o = self.objects[key]
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(o.modified))
            out.append(f"<Contents><Key>{text(key)}</Key><LastModified>{stamp}</LastModified><ETag>{escape(o.etag)}"
                       f"</ETag><Size>{len(o.data)}</Size></Contents>")
        out += [f"<CommonPrefixes><Prefix>{text(p)}</Prefix></CommonPrefixes>" for p in prefixes]
        if self.repeat_token:
            token = "again"
        out.append(f"<IsTruncated>{'true' if token else 'false'}</IsTruncated>")
        if token and "list-type" in asked:
            out.append(f"<NextContinuationToken>{escape(token)}</NextContinuationToken>")
        elif token and (asked.get("delimiter") or self.repeat_token):
            out.append(f"<NextMarker>{text(token)}</NextMarker>")
        return Reply(200, "".join(out) + "</ListBucketResult>", {"Content-Type": "application/xml"})

    def conditions(self, key, request):
        self.check_match(key, request.header("if-match"), request.header("if-none-match"))

    def do_get(self, key, request):
        self.check_match(key, request.header("if-match") if key in self.objects else "", "")
        return self.ranged(self.find(key), request, {})

    def do_head(self, key, request):
        try:
            o = self.find(key)
        except Refusal as r:
            return Reply(r.status)
        return Reply(200, b"", {"Content-Length": str(len(o.data)), "ETag": o.etag, "Content-Type": o.type,
                                "Last-Modified": email.utils.formatdate(o.modified, usegmt=True)})

    def do_put(self, key, request):
        self.conditions(key, request)
        o = self.add(key, request.body, request.header("content-type") or "binary/octet-stream")
        return Reply(200, b"", {"ETag": o.etag})

    def do_delete(self, key, request):
        self.objects.pop(key, None)
        return Reply(204)

    def do_begin(self, key, request):
        self.count += 1
        name = f"upload+{self.count}/="
        self.uploads[name] = (key, request.header("content-type") or "binary/octet-stream", {})
        return Reply(200, f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId></InitiateMultipartUploadResult>")

    def upload(self, key, request):
        name = request.asked["uploadId"]
        if name not in self.uploads or self.uploads[name][0] != key:
            raise Refusal(404, "NoSuchUpload", "The specified upload does not exist.")
        return name, self.uploads[name]

    def do_part(self, key, request):
        _, (_, _, parts) = self.upload(key, request)
        etag = f'"{hashlib.md5(request.body).hexdigest()}"'
        parts[int(request.asked["partNumber"])] = (etag, request.body)
        return Reply(200, b"", {"ETag": etag})

    def do_complete(self, key, request):
        name, (_, type, parts) = self.upload(key, request)
        if self.take(("late", ), "complete"):  # status 200, and an error in the body
            return Reply(200, '<?xml version="1.0"?>\n<Error><Code>InternalError</Code><Message>late</Message></Error>')
        self.conditions(key, request)
        text, rows = request.body.decode(), []
        for row in text.split("<Part>")[1:]:
            number = int(row.partition("<PartNumber>")[2].partition("<")[0])
            etag = row.partition("<ETag>")[2].partition("<")[0].replace("&quot;", '"')
            if number not in parts or parts[number][0] != etag:
                raise Refusal(400, "InvalidPart", "One or more of the specified parts could not be found.")
            rows.append(number)
        if rows != sorted(rows):
            raise Refusal(400, "InvalidPartOrder", "The list of parts was not in ascending order.")
        o = self.add(key, b"".join(parts[n][1] for n in rows), type)
        del self.uploads[name]
        return Reply(200, f"<CompleteMultipartUploadResult><ETag>{escape(o.etag)}</ETag>"
                     "</CompleteMultipartUploadResult>")

    def do_abort(self, key, request):
        del self.uploads[self.upload(key, request)[0]]
        return Reply(204)

    # Keys that are lent for a time, as to a container.

    def aside(self, request):
        if request.path != "/_keys":
            return None
        self.tokens += 1
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 7200))
        return Reply(200, f'{{"AccessKeyId": "LENT", "SecretAccessKey": "{SECRET}", "Token": "token-{self.tokens}", '
                     f'"Expiration": "{end}"}}')
