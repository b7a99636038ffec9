"""The signers of the stores' own SDKs and Rille's (sign_tool.cpp) agree on a thousand random requests each: the headers
of a signed request, and the addresses that anyone may use, of OSS, COS, OBS, Azure Blob Storage and Google Cloud
Storage. S3's are in sdk_signers.py."""
import datetime, hashlib, re, types, unittest.mock, urllib.parse

from sdk_signers import SignerCase, signers


def when(time_us):
    return datetime.datetime.fromtimestamp(time_us // 10**6, datetime.timezone.utc)


def as_sent(headers):
    """As they go over the wire, where the spaces around a value are not part of it."""
    return {name: value.strip() for name, value in headers}


def plain_query(url, own):
    """(URL without what a signature adds to its query, all pairs of its query)"""
    path, _, query = url.partition("?")
    plain = "&".join(p for p in query.split("&") if p and not p.lower().startswith(own))
    return path + (f"?{plain}" if plain else ""), pairs_in(url)


def pairs_in(url):
    return dict(urllib.parse.parse_qsl(url.partition("?")[2], keep_blank_values=True, separator="&"))


def key_of(request):
    return urllib.parse.unquote(request["path"][1:])


class StoreSigners(SignerCase):

    def of_oss(self, vendor):
        from alibabacloud_oss_v2.credentials import Credentials
        from alibabacloud_oss_v2.signer.v4 import SignerV4
        from alibabacloud_oss_v2.types import HttpRequest, SigningContext
        for r, url, headers, authorization in self.signed(vendor):
            plain, mine = plain_query(url, "x-oss-")
            own = ("x-oss-date", "x-oss-content-sha256", "x-oss-security-token")
            request = HttpRequest(r["method"], plain, {k: v for k, v in as_sent(headers).items() if k not in own})
            start = when(r["time_us"])
            context = SigningContext(product="oss", region=r["region"], bucket=r["bucket"], key=key_of(r),
                                     request=request, signing_time=start,
                                     credentials=Credentials(r["id"], r["secret"], r["token"] or None))
            context.auth_method_query = vendor == "oss_url"
            context.expiration_time = start + datetime.timedelta(seconds=r["expires_s"])
            SignerV4().sign(context)
            yield r, mine, as_sent(headers), authorization, request

    def test_oss(self):
        for r, _, headers, authorization, request in self.of_oss("oss"):
            self.assertEqual(request.headers["Authorization"], authorization, r)
            for name in ("x-oss-date", "x-oss-content-sha256", "x-oss-security-token"):
                self.assertEqual(request.headers.get(name), headers.get(name), r)

    def test_oss_url(self):
        for r, mine, _, _, request in self.of_oss("oss_url"):
            self.assertEqual(pairs_in(request.url), mine, r)

    def cos_client(self, r):
        from qcloud_cos import CosConfig, CosS3Client
        return CosS3Client(
            CosConfig(Region="ap-guangzhou", SecretId=r["id"], SecretKey=r["secret"], Domain=r["host"], Scheme="http"))

    def cos_time(self, r):
        """Its signatures begin a minute before now. (now, how long they last)"""
        start = r["time_us"] // 10**6 + 60
        return unittest.mock.patch("time.time", lambda: start), r["expires_s"] - start

    def test_cos(self):
        for r, url, headers, authorization in self.signed("cos"):
            now, lasts = self.cos_time(r)
            with now:
                told = self.cos_client(r).get_auth(
                    r["method"], "bucket-1", "/" + key_of(r), lasts, dict(as_sent(headers), Host=r["host"]),
                    pairs_in(url))
            self.assertEqual(told, authorization, r)

    def test_cos_url(self):
        for r, url, headers, _ in self.signed("cos_url"):
            plain, mine = plain_query(url, "q-")
            now, lasts = self.cos_time(r)
            with now:
                told = self.cos_client(r).get_presigned_url(
                    "bucket-1", "/" + key_of(r), r["method"], lasts, pairs_in(plain),
                    dict(as_sent(headers), Host=r["host"]))
            self.assertEqual(pairs_in(told), mine, r)

    def test_obs(self):
        from obs.auth import V4Authentication
        from obs.convertor import Adapter
        for r, url, headers, authorization in self.signed("obs"):
            date = signers.header(headers, "x-amz-date")
            signer = V4Authentication(r["id"], r["secret"], r["region"], date[:8], date, False, Adapter("v4"))
            told = signer.doAuth(r["method"], r["bucket"], key_of(r), pairs_in(url),
                                 dict(self.one_spaced(headers), host=r["host"]))
            self.assertEqual(told["Authorization"].replace(",", ", "), authorization, r)

    def one_spaced(self, headers):
        """It signs values as they stand: those with more than one space between words would not be S3's."""
        return {k: re.sub("[ \t]+", " ", v) for k, v in as_sent(headers).items()}

    def test_obs_url(self):
        from obs import ObsClient
        for r, url, headers, _ in self.signed("obs_url"):
            plain, mine = plain_query(url, "x-amz-")
            now = when(r["time_us"]).replace(tzinfo=None)
            client = ObsClient(r["id"], r["secret"], server="http://" + r["host"], signature="v4", region=r["region"],
                               is_cname=True, security_token=r["token"] or None)

            class Then(datetime.datetime):
                utcnow = classmethod(lambda _: now)

            with unittest.mock.patch("datetime.datetime", Then):
                told = client.createSignedUrl(r["method"], "bucket", key_of(r), None, r["expires_s"],
                                              self.one_spaced(headers), pairs_in(plain))
            client.close()
            self.assertEqual(pairs_in(told.signedUrl), mine, r)

    def test_azure(self):
        from azure.core.pipeline.transport import HttpRequest
        from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy
        for r, url, headers, authorization in self.signed("azure"):
            sent = as_sent(headers)
            if r["body"]:
                sent["Content-Length"] = str(len(r["body"]))
            request = HttpRequest(r["method"], url, sent)
            about = types.SimpleNamespace(http_request=request, context=types.SimpleNamespace(transport=None))
            SharedKeyCredentialPolicy(r["id"], r["secret"]).on_request(about)
            self.assertEqual(request.headers["Authorization"], authorization, r)

    def of_azure(self, vendor, **lent_of):
        from azure.storage.blob._shared_access_signature import BlobSharedAccessSignature
        for r, url, _, _ in self.signed(vendor):
            signer = BlobSharedAccessSignature(r["id"], **lent_of["keys"](r))
            signer.x_ms_version = "2021-12-02"
            utc = "%Y-%m-%dT%H:%M:%SZ"
            told = signer.generate_blob(r["bucket"], key_of(r), permission=r["rights"],
                                        expiry=when(r["time_us"]).strftime(utc),
                                        start=when(r["from_us"]).strftime(utc) if r["from_us"] else None,
                                        protocol="https" if r["https_only"] else "https,http")
            mine = {k: v for k, v in pairs_in(url).items() if k not in dict(r["query"])}
            self.assertEqual(pairs_in("?" + told), mine, r)

    def test_azure_sas(self):
        self.of_azure("azure_sas_url", keys=lambda r: dict(account_key=r["secret"]))

    def test_azure_sas_by_a_lent_key(self):

        def lent(r):
            key = types.SimpleNamespace(value=r["secret"])
            for name in ("oid", "tid", "start", "expiry", "service", "version"):
                setattr(key, "signed_" + name, r["lent"][name])
            return dict(user_delegation_key=key)

        self.of_azure("azure_lent_url", keys=lent)

    def test_google_url(self):
        from google.cloud.storage import _signing
        from google.cloud.storage.blob import _quote

        class Account(signing_credentials()):
            """The key is another test's matter: the digest stands for its signature."""

            def __init__(self, email):
                self.email = email

            signer = None
            signer_email = property(lambda self: self.email)

            def sign_bytes(self, text):
                return hashlib.sha256(text).digest()

        for r, url, headers, _ in self.signed("google_url"):
            plain, mine = plain_query(url, "x-goog-")
            told = _signing.generate_signed_url_v4(
                Account(r["id"]), "/" + _quote(key_of(r), safe=b"/~"), r["expires_s"], "http://" + r["host"],
                r["method"], headers=dict(headers), query_parameters=pairs_in(plain),
                _request_timestamp=mine["X-Goog-Date"])
            self.assertEqual(told.partition("?")[0], url.partition("?")[0], r)
            self.assertEqual(pairs_in(told), mine, r)


def signing_credentials():
    from google.auth.credentials import Signing
    return Signing
