#!/usr/bin/env python3
"""Amazon EC2 with Price List, Service Quotas, STS and IAM on one port; the service is read from the credential's scope.
Here: credentials and SigV4. aws_wire.py has EC2's protocol, aws_ec2.py its instances, aws_roles.py and aws_sso.py what
is lent, aws_more.py all the rest. Facts:
EC2 query protocol 2016-11-15, and errors and states as in section 1 of the project's provider facts.
"""
import re

import signatures
from aws_ec2 import Ec2
from aws_more import Ec2Other, json_service, who
from aws_network import Ec2Network
from aws_roles import Roles
from aws_sso import Sso
from aws_wire import ALLOWED, GROUPS, IMAGES, RULES, ZONES, tree, xml
from base import Fake, Refusal, Reply, main
from world import Type, stamp, unstamp


class Aws(Ec2, Ec2Network, Ec2Other, Roles, Sso, Fake):
    name, ENDS, disk_price, address_price = "aws", "TerminateInstances", 0.08, 0.005
    billing = dict(unit_s=1, minimum_s=60, from_live=True, until="ending", tells_end=True)
    CREATES = ("RunInstances", )
    REGIONS = {"us-east-1": 1.0, "us-west-2": 1.0, "eu-central-1": 1.25}
    TYPES = [
        Type("g4dn.xlarge", "T4", 1, 16, 4, 16, 526_000, 157_800),
        Type("g4dn.metal", "T4", 8, 16, 96, 384, 7_824_000, 2_347_200),
        Type("g5.xlarge", "A10G", 1, 24, 4, 16, 1_006_000, 402_400),
        Type("g5.48xlarge", "A10G", 8, 24, 192, 768, 16_288_000, 6_515_200),
        Type("p4d.24xlarge", "A100", 8, 40, 96, 1152, 21_957_642, 8_783_056),
        Type("p5.4xlarge", "H100", 1, 80, 16, 256, 4_326_000, 1_730_400),
        Type("p5.48xlarge", "H100", 8, 80, 192, 2048, 34_608_000, 13_843_200, zones=["us-east-1a", "us-west-2a"]),
        Type("m7i.large", "", 0, 0, 2, 8, 100_800, 40_300),
        Type("t3.2xlarge", "", 0, 0, 8, 32, 332_800, 110_000),
        Type("p3.2xlarge", "V100", 1, 16, 8, 61, 3_060_000, 918_000, hypervisor="xen"),
        Type("g4ad.xlarge", "Radeon Pro V520", 1, 8, 4, 16, 378_530, 113_600, maker="AMD"),
        Type("g5g.xlarge", "T4g", 1, 16, 4, 8, 420_000, 126_000, architecture="arm64")
    ]
    REFUSALS = {
        "malformed": Refusal(400, "InvalidParameterValue"),
        "capacity": Refusal(500, "InsufficientInstanceCapacity", "We currently do not have sufficient capacity in the "
                            "Availability Zone you requested."),
        "quota": Refusal(
            400, "VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit "
            "allows for the instance bucket that the specified instance type belongs to."),
        "throttle": Refusal(503, "RequestLimitExceeded", "Request limit exceeded."),
        "error": Refusal(500, "InternalError", "An internal error has occurred"),
        "auth": Refusal(400, "RequestExpired", "Request has expired."),
        "spot_price": Refusal(
            400, "SpotMaxPriceTooLow", "Your Spot request price is lower than the minimum required "
            "Spot request fulfillment price."),
    }

    def prepare(self):
        word = self.world.word
        upper, mixed = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "abcdefghijkLMNOPQRSTUVWXYZ0123456789/+"
        self.key, self.secret = "AKIA" + word(16, upper), word(40, mixed)
        self.key2, self.secret2, self.session = "ASIA" + word(16, upper), word(40, mixed), word(320, mixed) + "=="
        self.keys = {self.key: (self.secret, None), self.key2: (self.secret2, self.session)}
        self.account, self.spot_requests, self.named, self.groups = str(123456789011 + self.seed), {}, {}, {}
        self.rules, self.hidden_groups = {}, 0  # of security groups: (id, "in" or "out") -> rules
        self.zone_prices = {}  # zone -> factor
        self.placements = {}  # (region, name) -> its thing
        self.prepare_lending()
        self.prepare_sso()

    def settings(self):
        services = ("ec2", "pricing", "servicequotas", "sts", "iam", "sso", "oidc")
        return dict(
            endpoints={s: self.url
                       for s in services} | dict(metadata=self.url + "/_metadata"),
            regions=sorted(z for z in ZONES if not z.startswith("cn-")), image=next(iter(IMAGES)),
            subnet="subnet-0aaaaaaaaaaaaaaa1", security_group=next(iter(GROUPS)), zone="us-east-1a")

    def env(self):
        return dict(AWS_ACCESS_KEY_ID=self.key, AWS_SECRET_ACCESS_KEY=self.secret, AWS_DEFAULT_REGION="us-east-1")

    def temporary(self):
        return dict(AWS_ACCESS_KEY_ID=self.key2, AWS_SECRET_ACCESS_KEY=self.secret2, AWS_SESSION_TOKEN=self.session)

    def secrets(self):
        return [self.secret, self.secret2, self.session]

    # Identity and permissions of the caller.

    def parse(self, request):
        self.service, self.region = "ec2", "us-east-1"
        if request.path in self.SSO_PATHS:
            self.service = "sso"
            return self.SSO_PATHS[request.path], dict(request.query)
        scope = re.search(r"Credential=[^/]*/\d+/([^/]*)/([^/]*)/aws4_request", request.header("Authorization"))
        if scope:
            self.region, self.service = scope.groups()
        target = request.header("X-Amz-Target")
        if target:
            return target.rpartition(".")[2], request.json() or {}
        parameters = dict(request.form() if request.method == "POST" else request.query)
        if not scope and parameters.get("Action") == "AssumeRoleWithWebIdentity":
            self.service = "sts"
        return parameters.get("Action", ""), parameters

    def needs(self, operation, parameters):
        if self.service in ("sts", "sso"):  # allowed to every user; for a role its own policy decides
            return []
        tags = operation in ("RunInstances", "CreateVolume", "CreateSecurityGroup", "CreatePlacementGroup") and any(
            k.startswith("TagSpecification.") for k in parameters)
        # The first spot machine of an account makes EC2's role for spot machines, with the caller's rights.
        spot = operation == "RunInstances" and parameters.get("InstanceMarketOptions.MarketType") == "spot"
        return [f"{self.service}:{operation}"] + ["ec2:CreateTags"] * tags + ["iam:CreateServiceLinkedRole"] * spot

    def token_of(self, parameters, request):
        return str(parameters.get("ClientToken", ""))

    def verify(self, request):
        if self.service == "sso" or dict(request.form()).get("Action") == "AssumeRoleWithWebIdentity":
            return
        given = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?"
            r"SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})", request.header("Authorization"))
        if not given:
            raise Refusal(401, "AuthFailure", "AWS was not able to validate the provided access credentials")
        key, date, region, service, signed, signature = given.groups()
        secret, session = self.keys.get(key, (None, None))
        if not secret or (session and request.header("X-Amz-Security-Token") != session) or region not in ZONES:
            raise Refusal(403 if service != "ec2" else 401,
                          "AuthFailure" if service == "ec2" else "InvalidClientTokenId",
                          "AWS was not able to validate the provided access credentials")
        names = signed.split(";")
        needed = {"host", "x-amz-date"} | {k.lower() for k in request.headers if k.lower().startswith("x-amz-")}
        if names != sorted(names) or not needed <= set(names):
            raise Refusal(403, "SignatureDoesNotMatch", f"Headers must be signed, in order: {sorted(needed)}")
        sent = request.header("X-Amz-Date")
        at = unstamp(sent, "%Y%m%dT%H%M%SZ")
        if at is None or sent[:8] != date:
            raise Refusal(
                403, "SignatureDoesNotMatch", "Date in Credential scope does not match YYYYMMDD from ISO-8601 "
                f"version of date from HTTP: '{date}' != '{sent[:8]}'.")
        if abs(self.world.wall() - at) > 300:
            if service == "ec2":  # it does not say that it is the clock
                raise Refusal(401, "AuthFailure", "AWS was not able to validate the provided access credentials")
            raise Refusal(403, "SignatureDoesNotMatch", f"Signature expired: {sent} is now earlier than "
                          f"{stamp(self.world.wall() - 300, '%Y%m%dT%H%M%SZ')} (the service's time - 5 min.)")
        right = signatures.sigv4(request.method, request.path, request.raw_query, request.headers.items(), names,
                                 signatures.sha256(request.body), sent, region, service, secret)[1]
        if right != signature:
            raise Refusal(
                403, "SignatureDoesNotMatch", "The request signature we calculated does not match the "
                "signature you provided. Check your AWS Secret Access Key and signing method.")

    def render(self, r, request):
        if request.header("X-Amz-Target"):
            code = {
                "AuthFailure": "UnrecognizedClientException", "SignatureDoesNotMatch": "InvalidSignatureException",
                "RequestExpired": "ExpiredTokenException", "InvalidClientTokenId": "UnrecognizedClientException",
                "RequestLimitExceeded": "ThrottlingException"
            }.get(r.code, r.code)
            return Reply(400 if r.status in (401, 403) else r.status, {"__type": code, "message": r.message},
                         "application/x-amz-json-1.1", r.headers)
        if self.service == "sso":
            return self.refused_by_sso(r)
        error = dict(Code=r.code, Message=r.message)
        if self.service in ("sts", "iam"):
            body = xml({"Error": dict(Type="Sender", **error), "RequestId": self.request_id})
            body = f'<ErrorResponse xmlns="https://{self.service}.amazonaws.com/doc/">{body}</ErrorResponse>'
        else:
            body = xml({"Response": {"Errors": {"Error": error}, "RequestID": self.request_id}})
        return Reply(r.status, f'<?xml version="1.0" encoding="UTF-8"?>\n{body}', "text/xml;charset=UTF-8", r.headers)

    def run(self, operation, parameters, request):
        if request.header("X-Amz-Target"):
            return json_service(self, request, parameters)
        if self.service == "sso":
            return self.sso(operation, request)
        if self.service in ("sts", "iam"):
            return who(self, operation, parameters, request)
        if operation not in ALLOWED:
            raise Refusal(400, "InvalidAction", f"The action {operation} is not valid for this web service.")
        if parameters.get("Version") != "2016-11-15":
            raise Refusal(400, "InvalidAction", f"The action {operation} is not valid for version "
                          f"{parameters.get('Version')}.")
        own = {k: v for k, v in parameters.items() if k not in ("Action", "Version")}
        rules = RULES[operation]
        if rules.unknown(own):
            raise Refusal(400, "UnknownParameter", f"The parameter {rules.unknown(own)} is not recognized")
        if rules.missing(own):
            raise Refusal(400, "MissingParameter", f"The request must contain the parameter {rules.missing(own)}")
        self.dry = own.get("DryRun") == "true"
        reply = getattr(self, operation)(tree(own))
        body = xml(dict(requestId=self.request_id, **reply))
        return Reply(
            200, f'<?xml version="1.0" encoding="UTF-8"?>\n<{operation}Response xmlns="http://ec2.amazonaws.com/'
            f'doc/2016-11-15/">{body}</{operation}Response>', "text/xml;charset=UTF-8")


if __name__ == "__main__":
    main(Aws)
