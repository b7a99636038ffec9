"""The providers' published signatures, recomputed: unless these agree, nothing that the fakes verify means anything.
Sources: AWS's signing test suite and documents, Alibaba's and Tencent's documents, Huawei's SDK tests, RFC 7515.
"""
import unittest

import signatures as s

EMPTY = s.sha256(b"")
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SUITE = [("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z")]
FORM = "application/x-www-form-urlencoded"
STS_TOKEN = (
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8Y"
    "UuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q"
    "6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJa"
    "bIQwj2ICCR/oLxBA==")


def aws(method, query, headers, body=b"", service="service"):
    return s.sigv4(method, "/", query, headers, sorted({k.lower() for k, _ in headers}), s.sha256(body),
                   "20150830T123600Z", "us-east-1", service, AWS_SECRET)


class KnownAnswers(unittest.TestCase):
    equal = unittest.TestCase.assertEqual

    def test_aws(self):
        self.equal(aws("GET", "", SUITE), ("bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63",
                                           "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"))
        self.equal(aws("POST", "", SUITE)[1], "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b")
        self.equal(
            aws("GET", "Param2=value2&Param1=value1", SUITE)[1],
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500")
        self.equal(aws("POST", "", SUITE + [("Content-Type", FORM)], b"Param1=value1"),
                   ("42a5e5bb34198acb3e84da4f085bb7927f2bc277ca766e6d19c73c2154021281",
                    "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"))
        self.equal(
            aws("POST", "", SUITE + [("X-Amz-Security-Token", STS_TOKEN)])[1],
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead")
        self.equal(
            aws("GET", "Action=ListUsers&Version=2010-05-08", [("host", "iam.amazonaws.com"), SUITE[1],
                                                               ("content-type", FORM + "; charset=utf-8")],
                service="iam"), ("f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59",
                                 "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"))
        self.equal(
            s.sigv4_key(AWS_SECRET, "20150830", "us-east-1", "iam").hex(),
            "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9")
        s3 = [("host", "examplebucket.s3.amazonaws.com"), ("range", "bytes=0-9"), ("x-amz-content-sha256", EMPTY),
              ("x-amz-date", "20130524T000000Z")]
        self.equal(
            s.sigv4("GET", "/test.txt", "", s3, [k for k, _ in s3], EMPTY, "20130524T000000Z", "us-east-1", "s3",
                    AWS_SECRET.replace("+", "/"))[1],
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")

    def test_alibaba_rpc(self):
        pairs = dict(AccessKeyId="testid", Action="DescribeRegions", Format="XML", SignatureMethod="HMAC-SHA1",
                     SignatureNonce="3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf", SignatureVersion="1.0",
                     Timestamp="2016-02-23T12:46:24Z", Version="2014-05-26")
        self.equal(s.alibaba_rpc("GET", pairs.items(), "testsecret")[1], "OLeaidS1JvxuMvnyHOwuJ+uX5qY=")
        self.equal(
            s.alibaba_rpc("GET", [("query", "test"), ("body", "test")], "secret")[1], "XlUyV4sXjOuX5FnjUz9IF9tm5rU=")
        self.equal(s.quote(" ~/*-+"), "%20~%2F%2A-%2B")

    def test_alibaba_acs3(self):
        headers = [("host", "ecs.cn-shanghai.aliyuncs.com"), ("x-acs-action", "RunInstances"),
                   ("x-acs-content-sha256", EMPTY), ("x-acs-date", "2023-10-26T10:22:32Z"),
                   ("x-acs-signature-nonce", "3156853299f313e23d1673dc12e1703d"), ("x-acs-version", "2014-05-26")]
        query = "ImageId=win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd&RegionId=cn-shanghai"
        self.equal(s.alibaba_acs3("POST", "/", query, headers, [k for k, _ in headers], EMPTY, "YourAccessKeySecret"),
                   ("7ea06492da5221eba5297e897ce16e55f964061054b7695beedaac1145b1e259",
                    "06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"))
        self.equal(
            s.alibaba_acs3("GET", "/", "test=ok&empty=", [("x-acs-test", "http"), ("x-acs-test", "https")],
                           ["x-acs-test"], "55e12e91650d2fec56ec74e1d3e4ddbfce2ef3a65890c2a19ecf88a307e76a23",
                           "secret")[1], "d16b30a7699ae9e43875b13195b2f81bcc3ed10c14a9b5eb780e51619aa50be1")

    def test_tencent(self):
        body = rb'{"Limit": 1, "Filters": [{"Values": ["\u672a\u547d\u540d"], "Name": "instance-name"}]}'
        headers = [("content-type", "application/json; charset=utf-8"), ("host", "cvm.tencentcloudapi.com"),
                   ("x-tc-action", "DescribeInstances")]
        key = "Gu5t9xGARNpq86cd98joQYCN3EXAMPLE"

        def post(signed, secret):
            return s.tencent_tc3("POST", "", headers, signed, s.sha256(body), "1551113065", "2019-02-25", "cvm", secret)

        self.equal(post(["content-type", "host"], key),
                   ("5ffe6a04c0664d6b969fab9a13bdab201d63ee709638e2749d62a09ca18d7031",
                    "72e494ea809ad7a8c8f7a4507b9bddcbaa8e581f516e8da2f66e2c5a96525168"))
        key = key.replace("EXAMPLE", "*" * 7)
        self.equal(
            post(["content-type", "host"], key)[1], "2230eefd229f582d8b1b891af7107b91597240707d778ab3738f756258d7652c")
        self.equal(
            post(["content-type", "host", "x-tc-action"], key)[1],
            "be4f67d323c78ab9acb7395e43c0dbcf822a9cfac32fea2449a7bc7726b770a3")
        self.equal(
            s.tencent_tc3("GET", "Limit=10&Offset=0", [("content-type", FORM), headers[1]], ["content-type", "host"],
                          EMPTY, "1539084154", "2018-10-09", "cvm", key.replace("*" * 7, "EXAMPLE"))[1],
            "5da7a33f6993f0614b047e5df4582db9e9bf4672ba50567dba16c6ccf174c474")

    def test_rs256(self):
        n = int.from_bytes(
            s.unbase64url(
                "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yR"
                "T-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXB"
                "dQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9ia"
                "GNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"), "big")
        signature = s.unbase64url(
            "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9"
            "uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB"
            "_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rq"
            "Vt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw")
        message = (
            b"eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19"
            b"yb290Ijp0cnVlfQ")
        self.assertTrue(s.rs256_verify(message, signature, n, 65537))
        self.assertFalse(s.rs256_verify(message + b"x", signature, n, 65537))

    def test_huawei(self):
        headers = [("host", "service.endpoint.myhuaweicloud.com"), ("x-sdk-date", "20200608T023900Z")]
        for method, body, right in (("GET", b"", "cfb4171acec81de07d50e53d57eb77edd537414d66ddb1d7d780f128e12cd842"),
                                    ("POST", b'{"name":"test","id":1}',
                                     "436b1ac0a1ae03705934bb70ef2f2e09f7bfed2117d731a38235053199323a1f")):
            self.equal(
                s.huawei(method, "/resources", "size=1", headers, ["host", "x-sdk-date"], s.sha256(body),
                         "20200608T023900Z", "SecretKey")[1], right)
        headers = [("content-type", "application/json"), ("host", "service.region.example.com"),
                   ("x-sdk-date", "20191115T033655Z")]
        self.equal(
            s.huawei("GET", "/v1/77b6a44cba5143ab91d13ab9a8ff44fd/vpcs",
                     "limit=2&marker=13551d6b-755d-4757-b956-536f674975c0", headers, [k for k, _ in headers], EMPTY,
                     "20191115T033655Z", "MFyfvK41ba2giqM7Uio6PznpdUKGpownRZlmVmHc"),
            ("b25362e603ee30f4f25e7858e8a7160fd36e803bb2dfe206278659d71a9bcd7a",
             "7be6668032f70418fcc22abc52071e57aff61b84a1d2381bb430d6870f4f6ebe"))
