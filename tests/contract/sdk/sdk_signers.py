"""The vendors' own signers and signatures.py, by which the fakes verify, agree on a thousand random requests each."""
import json, random, unittest, urllib.parse

import sdk_base  # noqa: F401
import signatures

LETTERS = "abcXYZ019-_.~ +*/=&%?#:;,!'()[]{}\"\\\téß未😀"
COUNT = 1000


class Signers(unittest.TestCase):

    def setUp(self):
        self.dice = random.Random(5)

    def word(self, letters=LETTERS, least=0):
        return "".join(self.dice.choice(letters) for _ in range(self.dice.randrange(least, 20)))

    def name(self):
        return self.word("abcdefgXYZ019.", 1)

    def pairs(self):
        return {self.name(): self.word() for _ in range(self.dice.randrange(6))}

    def secret(self):
        return self.word("abcdXYZ0189+/", 16)

    def test_aws(self):
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
        for _ in range(COUNT):
            secret, token = self.secret(), self.dice.choice([None, self.secret()])
            method, data = self.dice.choice(["POST", "GET"]), self.word().encode()
            query = urllib.parse.urlencode(self.pairs(), quote_via=urllib.parse.quote)
            request = AWSRequest(
                method, "http://127.0.0.1:8080/?" + query,
                {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8", "X-Amz-Target": self.name()}, data)
            SigV4Auth(Credentials("AKID", secret, token), self.dice.choice(["ec2", "sts"]),
                      "eu-central-1").add_auth(request)
            headers = dict(request.headers.items(), Host="127.0.0.1:8080")
            told = headers["Authorization"]
            signed = told.partition("SignedHeaders=")[2].partition(",")[0].split(";")
            service = told.split("/")[3]
            mine = signatures.sigv4(method, "/", query, headers.items(), signed, signatures.sha256(data),
                                    headers["X-Amz-Date"], "eu-central-1", service, secret)[1]
            self.assertEqual(mine, told[-64:])

    def test_alibaba(self):
        from alibabacloud_tea_openapi.utils import Utils
        from darabonba.request import DaraRequest
        for _ in range(COUNT):
            request, secret = DaraRequest(), self.secret()
            request.method, request.pathname, request.query = self.dice.choice(["POST", "GET"]), "/", self.pairs()
            request.headers = {
                "host": "ecs.aliyuncs.com", "x-acs-action": self.name(), "x-acs-date": "2026-11-22T00:00:00Z",
                "x-acs-signature-nonce": self.word(), "user-agent": self.word(), "accept": "application/json"
            }
            payload = signatures.sha256(self.word())
            told = Utils.get_authorization(request, "ACS3-HMAC-SHA256", payload, "ak", secret)
            query = urllib.parse.urlencode(request.query)  # as it goes over the wire: a space is a plus
            mine = signatures.alibaba_acs3(request.method, "/", query, request.headers.items(), sorted(request.headers),
                                           payload, secret)[1]
            self.assertEqual(mine, told[-64:])

    def test_alibaba_before(self):
        from aliyunsdkcore.auth.composer import rpc_signature_composer
        for _ in range(COUNT):
            query, form, secret = self.pairs(), self.pairs(), self.secret()
            method = self.dice.choice(["POST", "GET"])
            url, text = rpc_signature_composer.get_signed_url(query, "ak", secret, "JSON", method, form)
            got = urllib.parse.parse_qsl(url[2:], keep_blank_values=True)
            merged = dict(got, **form)
            mine_text, mine = signatures.alibaba_rpc(method, merged.items(), secret)
            self.assertEqual((mine_text, mine), (text, merged["Signature"]))

    def test_tencent(self):
        from tencentcloud.common.abstract_client import AbstractClient
        from tencentcloud.common.http.request import RequestInternal
        client = AbstractClient.__new__(AbstractClient)
        for _ in range(COUNT):
            secret, method = self.secret(), self.dice.choice(["POST", "GET"])
            data = urllib.parse.urlencode(self.pairs()) if method == "GET" else json.dumps(self.pairs())
            headers = {
                "Content-Type": "application/json", "Host": "cvm.tencentcloudapi.com", "X-TC-Timestamp": "1551113065"
            }
            request = RequestInternal("cvm.tencentcloudapi.com", method, "/", headers, data)
            told = client._get_tc3_signature({}, request, "2019-02-25", "cvm", secret)
            body = "" if method == "GET" else data
            mine = signatures.tencent_tc3(method,
                                          data if method == "GET" else "", headers.items(), ["content-type", "host"],
                                          signatures.sha256(body), "1551113065", "2019-02-25", "cvm", secret)[1]
            self.assertEqual(mine, told)

    def test_huawei(self):
        from huaweicloudsdkcore.auth.credentials import BasicCredentials
        from huaweicloudsdkcore.sdk_request import SdkRequest
        from huaweicloudsdkcore.signer.signer import Signer
        for _ in range(COUNT):
            secret, method, data = self.secret(), self.dice.choice(["POST", "GET"]), self.word()
            path = "/v1/" + "/".join(urllib.parse.quote(self.word("abcXYZ é+~"), safe="") or "x" for _ in range(3))
            headers = {
                "Content-Type": "application/json", "X-Project-Id": self.name(), "X-Client-Token": self.word("abc-0")
            }
            request = SdkRequest(method, "http", "ecs.cn-north-4.myhuaweicloud.com", path, "",
                                 list(self.pairs().items()), dict(headers), data)
            told = Signer(BasicCredentials("ak", secret, "p")).sign(request)
            names = told.header_params["Authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
            query = told.uri.partition("?")[2]
            mine = signatures.huawei(method,
                                     told.uri.partition("?")[0], query, told.header_params.items(), names,
                                     signatures.sha256(data), told.header_params["X-Sdk-Date"], secret)[1]
            self.assertEqual(mine, told.header_params["Authorization"][-64:])
