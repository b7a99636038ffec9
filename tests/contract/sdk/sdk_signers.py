"""The vendors' own signers, Rille's (sign_tool.cpp) and signatures.py, by which the fakes verify, agree on a thousand
random requests each: the whole Authorization, or the whole URL, is the same text."""
import datetime, pathlib, sys, unittest, unittest.mock, urllib.parse

import sdk_base  # noqa: F401

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import signers  # noqa: E402

sys.path.pop(0)
COUNT = 1000


class SignerCase(unittest.TestCase):
    program = None  # sign_tool

    def setUp(self):
        self.tool = signers.Tool(self.program)
        self.addCleanup(self.tool.close)

    def signed(self, vendor):
        """Each random request, how Rille has signed it, and what both say must be said by the vendor's signer, too."""
        for request in signers.requests(vendor, COUNT):
            url, headers = self.tool.sign(request)
            self.assertEqual(signers.signature_of(url, headers), signers.by_formula(request, url, headers), request)
            rest = [(k, v) for k, v in headers if k != "Authorization"]
            yield request, url, rest, signers.header(headers, "authorization")


class Signers(SignerCase):

    def test_aws(self):
        from botocore.auth import S3SigV4Auth, SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
        for r, url, headers, authorization in self.signed("aws"):
            request = AWSRequest(r["method"], url, {"Host": r["host"]}, r["body"])
            for name, value in headers:
                if name.lower() not in ("x-amz-date", "x-amz-security-token", "x-amz-content-sha256"):
                    request.headers[name] = value  # one more of that name
            kind = S3SigV4Auth if r["service"] == "s3" else SigV4Auth
            now = datetime.datetime.fromtimestamp(r["time_us"] / 1e6, datetime.timezone.utc)
            with unittest.mock.patch("botocore.auth.get_current_datetime", lambda: now):
                kind(Credentials(r["id"], r["secret"], r["token"] or None), r["service"], r["region"]).add_auth(request)
            self.assertEqual(request.headers["Authorization"], authorization, r)
            told = {k.lower(): v for k, v in request.headers.items()}
            for name in ("x-amz-date", "x-amz-security-token", "x-amz-content-sha256"):
                self.assertEqual(told.get(name, ""), signers.header(headers, name), r)

    def test_aws_url(self):
        from botocore.auth import S3SigV4QueryAuth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
        for r, url, headers, _ in self.signed("aws_url"):
            path, query = signers.split(url)
            plain = "&".join(p for p in query.split("&") if not p.startswith("X-Amz-"))
            request = AWSRequest(r["method"], f"http://{r['host']}{path}" + (f"?{plain}" if plain else ""),
                                 dict(headers, Host=r["host"]))
            now = datetime.datetime.fromtimestamp(r["time_us"] / 1e6, datetime.timezone.utc)
            with unittest.mock.patch("botocore.auth.get_current_datetime", lambda: now):
                S3SigV4QueryAuth(Credentials(r["id"], r["secret"], r["token"] or None), "s3", r["region"],
                                 expires=r["expires_s"]).add_auth(request)
            told = dict(urllib.parse.parse_qsl(request.url.partition("?")[2], keep_blank_values=True))
            self.assertEqual(told, dict(urllib.parse.parse_qsl(query, keep_blank_values=True)), r)

    def test_alibaba(self):
        from alibabacloud_tea_openapi.utils import Utils
        from darabonba.request import DaraRequest
        for r, url, headers, authorization in self.signed("alibaba"):
            request = DaraRequest()
            request.method, request.pathname, request.query = r["method"], r["path"], dict(r["query"])
            request.headers = {"host": r["host"]}
            for name, value in headers:  # a second one of a name stands under another name there
                request.headers[name.upper() if name in request.headers else name] = value
            self.assertEqual(len(request.headers), len(headers) + 1)
            payload = signers.header(headers, "x-acs-content-sha256")
            told = Utils.get_authorization(request, "ACS3-HMAC-SHA256", payload, r["id"], r["secret"])
            self.assertEqual(told, authorization, r)

    def test_alibaba_before(self):
        from aliyunsdkcore.auth.composer import rpc_signature_composer as composer
        for r, url, _, _ in self.signed("alibaba_rpc"):
            mine = dict(signers.signatures.pairs_of(signers.split(url)[1]))
            query = dict(r["query"], Action=r["action"], Version=r["version"])
            if r["token"]:
                query["SecurityToken"] = r["token"]
            with unittest.mock.patch.object(composer.helper, "get_iso_8061_date", lambda: mine["Timestamp"]), \
                    unittest.mock.patch.object(composer.helper, "get_uuid", lambda: r["nonce"]):
                told, _ = composer.get_signed_url(query, r["id"], r["secret"], "JSON", r["method"], {})
            self.assertEqual(dict(signers.signatures.pairs_of(told.partition("?")[2])), mine, r)

    def test_tencent(self):
        from tencentcloud.common.abstract_client import AbstractClient
        from tencentcloud.common.credential import Credential
        from tencentcloud.common.http.request import RequestInternal
        for r, url, headers, authorization in self.signed("tencent"):
            mine = {k.lower(): v for k, v in headers}
            client = AbstractClient(Credential(r["id"], r["secret"], r["token"] or None), r["region"])
            client._service, client._apiVersion, client._endpoint = r["service"], r["version"], r["host"]
            data = signers.split(url)[1] if r["method"] == "GET" else r["body"].decode()
            request = RequestInternal(r["host"], r["method"], "/", {}, "")
            # Its own texts of parameters, with other spaces and escapes, are as good: here it is given ours.
            with unittest.mock.patch("time.time", lambda: r["time_us"] // 10**6), \
                    unittest.mock.patch("json.dumps", lambda _: data), \
                    unittest.mock.patch("tencentcloud.common.abstract_client.urlencode", lambda _: data), \
                    unittest.mock.patch("tencentcloud.common.abstract_client._json_content", mine["content-type"]), \
                    unittest.mock.patch.object(client, "_get_endpoint", lambda **_: r["host"]):
                client._build_req_with_tc3_signature(r["action"], {}, request)
            told = {k.lower(): v for k, v in request.header.items()}
            self.assertEqual(told["authorization"], authorization, r)
            self.assertEqual({k: told.get(k) for k in mine}, mine, r)

    def test_huawei(self):
        from huaweicloudsdkcore.auth.credentials import BasicCredentials
        from huaweicloudsdkcore.sdk_request import SdkRequest
        from huaweicloudsdkcore.signer.signer import DerivationAKSKSigner, Signer
        for r, url, headers, authorization in self.signed("huawei"):
            path, query = signers.split(url)
            request = SdkRequest(r["method"], "http", r["host"], path, "", list(r["query"]), dict(headers), r["body"])
            who = BasicCredentials(r["id"], r["secret"], "p")
            if r.get("service"):
                told = DerivationAKSKSigner(who).sign(request, r["service"], r["region"])
            else:
                told = Signer(who).sign(request)
            self.assertEqual(told.header_params["Authorization"], authorization, r)
            sent = urllib.parse.parse_qsl(told.uri.partition("?")[2], keep_blank_values=True)
            self.assertEqual(sorted(sent), sorted(signers.signatures.pairs_of(query)), r)
