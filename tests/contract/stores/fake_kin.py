"""The relatives of S3: OSS, COS and OBS, with their signatures, conditions and errors (fake_store.py)."""
import store_signatures as own
from fake_store import ID, SECRET, Refusal, S3


class Obs(S3):
    """Takes Amazon's signature, as Huawei's SDK can send it, and has no conditional put."""
    scheme, region = "obs", "cn-north-4"

    def environment(self):
        return dict(HUAWEICLOUD_SDK_AK=ID, HUAWEICLOUD_SDK_SK=SECRET)

    def conditions(self, key, request):
        pass


class ForbidsOverwrite(S3):

    def conditions(self, key, request):
        if request.header(f"x-{self.scheme}-forbid-overwrite") == "true" and key in self.objects:
            raise Refusal(409, "FileAlreadyExists", "The object you specified already exists")


class Oss(ForbidsOverwrite):
    scheme, region = "oss", "cn-hangzhou"
    REFUSALS = dict(S3.REFUSALS, throttle=(503, "QpsLimitExceeded", "Please reduce your request rate."),
                    expired=(403, "SecurityTokenExpired", "The security token you provided has expired."))

    def environment(self):
        return dict(ALIBABA_CLOUD_ACCESS_KEY_ID=ID, ALIBABA_CLOUD_ACCESS_KEY_SECRET=SECRET)

    def verify(self, request):
        asked = request.asked
        if "x-oss-signature" in asked:
            credential, date, told = asked["x-oss-credential"], asked["x-oss-date"], asked["x-oss-signature"]
            assert asked["x-oss-signature-version"] == "OSS4-HMAC-SHA256"
            if self.near_start(date) + int(asked["x-oss-expires"]) < self.now():
                raise Refusal(403, "AccessDenied", "Request has expired.")
            also = [n for n in (asked.get("x-oss-additional-headers") or "").split(";") if n]
        else:
            fields = dict(f.split("=", 1) for f in
                          request.header("authorization").removeprefix("OSS4-HMAC-SHA256 ").split(","))
            credential, told, date = fields["Credential"], fields["Signature"], request.header("x-oss-date")
            also = [n for n in fields.get("AdditionalHeaders", "").split(";") if n]
            self.near(date)
            assert request.header("x-oss-content-sha256") == "UNSIGNED-PAYLOAD"
        id, day, region, service, end = credential.split("/")
        assert (day, service, end) == (date[:8], "oss", "aliyun_v4_request"), credential
        if id != ID:
            raise Refusal(403, "InvalidAccessKeyId", "The OSS Access Key Id you provided does not exist.")
        if region != self.region:
            raise Refusal(403, "AccessDenied", "The bucket you are attempting to access must be addressed using the "
                          "specified endpoint.", elements=dict(Endpoint=f"oss-{self.region}.aliyuncs.com"))
        pairs = [p for p in request.pairs if p[0] != "x-oss-signature"]
        self.expect(own.oss4(request.method, request.path, pairs, request.headers, also, date, self.region, SECRET),
                    told)


class Cos(ForbidsOverwrite):
    scheme, region, bucket = "cos", "ap-guangzhou", "bucket-1250000000"

    def environment(self):
        return dict(TENCENTCLOUD_SECRET_ID=ID, TENCENTCLOUD_SECRET_KEY=SECRET)

    def verify(self, request):
        signed = request.header("authorization")
        fields = dict(f.split("=", 1) for f in signed.split("&")) if signed else request.asked
        if "q-signature" not in fields:
            raise Refusal(403, "AccessDenied", "Access Denied.")
        if fields["q-ak"] != ID:
            raise Refusal(403, "InvalidAccessKeyId", "The Access Key Id you provided does not exist in our records")
        start, end = (int(n) for n in fields["q-sign-time"].split(";"))
        if self.now() < start - 1 or self.now() > end:
            raise Refusal(403, "RequestTimeTooSkewed" if self.now() < start else "AccessDenied", "Request has expired")
        headers, names = fields["q-header-list"].split(";"), fields["q-url-param-list"].split(";")
        pairs = [p for p in request.pairs if not p[0].startswith("q-")]
        missing = [k for k, _ in pairs if own.quote(k).lower() not in names]
        missing += [k for k, _ in request.headers if k.lower().startswith("x-cos-") and k.lower() not in headers]
        assert "host" in headers and not missing, (headers, names, missing)
        right = own.cos(request.method, request.path, pairs, request.headers, headers, names, fields["q-sign-time"],
                        SECRET)
        self.expect(right, fields["q-signature"])


