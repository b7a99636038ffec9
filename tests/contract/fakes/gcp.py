#!/usr/bin/env python3
"""Google Compute Engine v1 with the token endpoint of service accounts (JWT, RS256) and the Cloud Billing catalogue.
Here: tokens, paths, operations; gcp_compute.py has instances, gcp_disks.py disks, gcp_more.py the rest. An instance's
name is unique in its zone; requestId makes a call once. What a requestId with another body does is nowhere said: here
the first answer comes again. Stock runs out late, in the operation.
"""
import json, os, re, shutil, tempfile, urllib.parse

import signatures
from base import Fake, Refusal, Reply, main
from gcp_compute import Compute
from gcp_disks import Disks
from gcp_more import TYPES, ZONES, More
from lending import TOKEN, way, wrong
from rsa_key import EXPONENT, RsaKey
from world import stamp

SCOPES = {"https://www.googleapis.com/auth/" + name for name in ("cloud-platform", "compute", "iam")}
ROUTES = [
    (m, re.compile("/compute/v1/projects/(?P<project>[^/]+)" + p), n)
    for m, p, n in [("GET", "",
                     "getProject"), ("GET", "/zones",
                                     "listZones"), ("GET", "/regions",
                                                    "listRegions"), ("GET", "/regions/(?P<region>[^/]+)", "getRegion"),
                    ("GET", "/aggregated/(?P<kind>instances|machineTypes|acceleratorTypes|disks|operations)",
                     "aggregated"),
                    ("GET", "/zones/(?P<zone>[^/]+)/(?P<kind>instances|machineTypes|acceleratorTypes|disks|operations)",
                     "list"), ("POST", "/zones/(?P<zone>[^/]+)/instances", "insertInstance"),
                    ("GET", "/zones/(?P<zone>[^/]+)/instances/(?P<name>[^/]+)",
                     "getInstance"), ("DELETE", "/zones/(?P<zone>[^/]+)/instances/(?P<name>[^/]+)", "deleteInstance"),
                    ("POST",
                     "/zones/(?P<zone>[^/]+)/instances/(?P<name>[^/]+)/"
                     "(?P<action>stop|start|setMachineType|setLabels|attachDisk)",
                     "actOnInstance"), ("GET", "/zones/(?P<zone>[^/]+)/operations/(?P<name>[^/]+)", "getOperation"),
                    ("POST", "/zones/(?P<zone>[^/]+)/operations/(?P<name>[^/]+)/wait",
                     "waitOperation"), ("GET", "/zones/(?P<zone>[^/]+)/disks/(?P<name>[^/]+)", "getDisk"),
                    ("POST", "/zones/(?P<zone>[^/]+)/disks", "insertDisk"),
                    ("DELETE", "/zones/(?P<zone>[^/]+)/disks/(?P<name>[^/]+)",
                     "deleteDisk"), ("GET", "/global/(?P<kind>firewalls)", "list"),
                    ("POST", "/global/firewalls", "insertFirewall"),
                    ("GET", "/global/firewalls/(?P<name>[^/]+)", "getFirewall"),
                    ("DELETE", "/global/firewalls/(?P<name>[^/]+)", "deleteFirewall"),
                    ("GET", "/global/operations/(?P<name>[^/]+)", "getGlobalOperation"), (
                         "GET", "/zones/(?P<zone>[^/]+)/machineTypes/(?P<name>[^/]+)",
                         "getMachineType"), ("GET", "/global/images/family/(?P<name>[^/]+)", "getImageFromFamily")]
]


def refusal(status, reason, message, word, headers=None):
    return Refusal(status, reason, message, headers, word=word)


class Gcp(Compute, Disks, More, Fake):
    name, notice, end = "gcp", 30.0, 1.0
    billing = dict(unit_s=1, minimum_s=60, from_live=True, until="gone")
    ENDS, disk_price, address_price = "deleteInstance", 0.10, 0.005
    CREATES, LATE = ("insertInstance", ), ("capacity", )
    REGIONS = {"us-central1": 1.0, "europe-west4": 1.1, "asia-east1": 1.15}
    TYPES = TYPES
    REFUSALS = {
        "malformed": refusal(400, "invalid", "malformed", "INVALID_ARGUMENT"), "capacity": Refusal(
            503, "ZONE_RESOURCE_POOL_EXHAUSTED", "The zone does not have enough resources available to fulfill "
            "the request. Try a different zone, or try again later."),
        "quota": refusal(403, "quotaExceeded", "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 1.0 globally.",
                         "PERMISSION_DENIED"), "throttle": refusal(
                             403, "rateLimitExceeded",
                             "Quota exceeded for quota metric 'Queries' and limit 'Queries per "
                             "minute' of service 'compute.googleapis.com'.", "PERMISSION_DENIED"),
        "error": refusal(503, "backendError", "Internal error. Please try again or contact Google Support.",
                         "UNAVAILABLE"),
        "auth": refusal(401, "authError", "Request had invalid authentication credentials.", "UNAUTHENTICATED")
    }

    NEEDS = {
        "getProject": "compute.projects.get", "getRegion": "compute.regions.get",
        "listMachineTypes": "compute.machineTypes.list", "listAcceleratorTypes": "compute.acceleratorTypes.list",
        "insertInstance": "compute.instances.create compute.instances.setLabels compute.instances.setMetadata "
        "compute.instances.setTags compute.disks.create compute.disks.setLabels compute.images.useReadOnly "
        "compute.subnetworks.use "
        "compute.subnetworks.useExternalIp", "getInstance": "compute.instances.get",
        "aggregatedInstances": "compute.instances.list", "aggregatedDisks": "compute.disks.list",
        "getDisk": "compute.disks.get", "deleteDisk": "compute.disks.delete",
        "insertDisk": "compute.disks.create compute.disks.setLabels",
        "attachDisk": "compute.instances.attachDisk compute.disks.use",
        "deleteInstance": "compute.instances.delete", "getOperation": "compute.zoneOperations.get",
        "stop": "compute.instances.stop", "start": "compute.instances.start",
        "setMachineType": "compute.instances.setMachineType", "getServiceAccountKey": "iam.serviceAccountKeys.get",
        "insertFirewall": "compute.firewalls.create compute.networks.updatePolicy",
        "deleteFirewall": "compute.firewalls.delete compute.networks.updatePolicy",
        "getFirewall": "compute.firewalls.get", "listFirewalls": "compute.firewalls.list",
        "getGlobalOperation": "compute.globalOperations.get"
    }

    def prepare(self):
        self.project = "rille-fake" if self.seed == 1 else f"rille-fake{self.seed}"
        self.folder = tempfile.mkdtemp(prefix="rille-fake-gcp-")
        self.account, self.rsa = f"rille@{self.project}.iam.gserviceaccount.com", RsaKey(self.world.word(8))
        self.tokens, self.operations, self.key_id = {}, {}, self.world.word(40)
        self.world.token_lifetime = 3600
        self.identity_token = ".".join(["eyJhbGciOiJSUzI1NiJ9", self.world.word(120), self.world.word(80)])
        self.lent.append(self.identity_token)

    def settings(self):
        path = os.path.join(self.folder, "key.json")
        with open(path, "w") as f:
            json.dump(
                dict(type="service_account", project_id=self.project, private_key_id=self.key_id,
                     private_key=self.rsa.pem, client_email=self.account, client_id="1", token_uri=self.url + "/token"),
                f)
        os.chmod(path, 0o600)
        return dict(
            endpoints=dict(token=self.url + "/token", compute=self.url + "/compute/v1", billing=self.url + "/v1",
                           iam=self.url + "/v1",
                           metadata=self.url + "/_metadata"), regions=sorted(ZONES), project=self.project,
            zone="us-central1-a", image="projects/rille-fake/global/images/family/rille-gpu",
            network="global/networks/default", credentials=path)

    def env(self):
        return dict(GOOGLE_APPLICATION_CREDENTIALS=os.path.join(self.folder, "key.json"),
                    GOOGLE_CLOUD_PROJECT=self.project)

    def secrets(self):
        return [*self.rsa.pem.split("\n")[1:-2], *self.tokens]

    # Without a key of Google's.

    AUDIENCE = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/rille/providers/k8s"
    EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"

    def external(self, source, **more):
        return json.dumps(
            dict(type="external_account", audience=self.AUDIENCE, token_url=self.url + "/token",
                 subject_token_type="urn:ietf:params:oauth:token-type:jwt", credential_source=source, **more))

    def printing(self):
        """The variables with which a program may print the token; the program; what it prints."""
        env = dict(GOOGLE_APPLICATION_CREDENTIALS="{home}/wif.json", GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES="1")
        told = json.dumps(
            dict(version=1, success=True, token_type="urn:ietf:params:oauth:token-type:jwt",
                 id_token=self.identity_token, expiration_time=int(self.world.wall()) + 3600))
        program = f"""[ "$1 $GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE" = "x {self.AUDIENCE}" ] || exit 9
[ "$GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE" = urn:ietf:params:oauth:token-type:jwt ] || exit 8
case $GOOGLE_EXTERNAL_ACCOUNT_IMPERSONATED_EMAIL in "" | {self.account}) cat {{home}}/printed ;; esac
"""
        return env, dict(program=program, printed=told), told

    def wrong_ways(self):
        allowed, program, printed = self.printing()

        def by(command, env=allowed, **printed):
            source = self.external(dict(executable=dict(command=command)))
            return env, dict({"wif.json": source, "printed": json.dumps(printed)}, program=program["program"])

        told = json.loads(printed)
        no = dict(version=1, success=False, code="403", message="the vault is closed")
        bare = {k: v for k, v in allowed.items() if "ALLOW" not in k}
        return [
            wrong("a program that nobody has allowed", "auth", "running such programs is not allowed",
                  "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1", *by("sh {home}/program x", bare, **told)),
            wrong("a program that fails", "auth", "ended with exit code 9", "run it by hand",
                  *by("sh {home}/program", **told)),
            wrong("a program that says no", "auth", "says: 403 the vault is closed", "this message is the program",
                  *by("sh {home}/program x", **no)),
            wrong("a program whose token is over", "auth", "printed an expired token", "log in again",
                  *by("sh {home}/program x", **dict(told, expiration_time=1))),
            wrong("a program with a token of another type", "auth", "printed no token of type 'x'", "id_token",
                  *by("sh {home}/program x", **dict(told, token_type="x"))),
        ]

    def ways(self):
        stand_in = f"{self.url}/v1/projects/-/serviceAccounts/{self.account}:generateAccessToken"
        file, env, external = "wif.json", dict(GOOGLE_APPLICATION_CREDENTIALS="{home}/wif.json"), self.external
        with open(os.path.join(self.folder, "key.json")) as f:
            key = json.load(f)
        allowed, program, printed = self.printing()
        by_url = dict(url=self.url + "/_metadata/host/identity", headers={"X-Wanted": "yes"},
                      format=dict(type="json", subject_token_field_name="value"))
        return [
            way("workload identity, by a file", "{home}/wif.json", env,
                {file: external(dict(file="{home}/token")), TOKEN: self.identity_token}, TOKEN),
            way("workload identity, by a URL, as a service account", "{home}/wif.json", env,
                {file: external(by_url, service_account_impersonation_url=stand_in)}),
            way("a service account in the place of another", "{home}/impersonated.json",
                dict(GOOGLE_APPLICATION_CREDENTIALS="{home}/impersonated.json"), {
                    "impersonated.json": json.dumps(
                        dict(type="impersonated_service_account", service_account_impersonation_url=stand_in,
                             source_credentials=key))
                }),
            way("workload identity, by a program", "{home}/wif.json", allowed,
                dict(program, **{file: external(dict(executable=dict(command="sh {home}/program x", timeout_millis=9000,
                                                                     output_file="{home}/left"))), "left": ""})),
            way("workload identity, by a program, as a service account", "{home}/wif.json", allowed,
                dict(program, **{file: external(dict(executable=dict(command="sh {home}/program x")),
                                                service_account_impersonation_url=stand_in)})),
            way("workload identity, by what a program has left", "{home}/wif.json", allowed,
                {file: external(dict(executable=dict(command="false", output_file="{home}/left"))), "left": printed}),
            way("gcloud's file", ".config/gcloud/application_default_credentials.json",
                files={".config/gcloud/application_default_credentials.json": json.dumps(key)}),
            way("this machine", "this machine's own identity", metadata=self.url + "/_metadata/host"),
        ]

    def host_metadata(self, request, path):
        if path == "/identity" and request.header("X-Wanted") == "yes":
            return Reply(200, dict(value=self.identity_token))
        if request.header("Metadata-Flavor") != "Google":
            return Reply(403, "Missing Metadata-Flavor:Google header.", "text/plain")
        if path == "/computeMetadata/v1/instance/service-accounts/default/token":
            return self.new_token("machine")
        return Reply(404, "", "text/plain")

    def new_token(self, by):
        token = "ya29.c." + self.world.word(160)
        self.tokens[token] = self.world.wall() + 3599
        self.loans.append(by)
        return Reply(200, dict(access_token=token, expires_in=self.key_lifetime - 1, token_type="Bearer"))

    def exchange(self, form):
        bad = lambda why: Refusal(400, "invalid_grant", why)
        if form.get("audience") != self.AUDIENCE or form.get("subject_token") != self.identity_token:
            raise bad("The audience or the token in ID Token does not match the expected.")
        if form.get("subject_token_type") != "urn:ietf:params:oauth:token-type:jwt" or not set(
                form.get("scope", "").split()) & SCOPES:
            raise bad("Invalid subject token type, or no scope.")
        return self.new_token("exchange")

    def stand_in(self, request):
        body = request.json() or {}
        if not set(body.get("scope") or []) & SCOPES or not re.fullmatch(r"\d+s", body.get("lifetime", "")):
            raise self.invalid("scope and lifetime are wanted")
        token = json.loads(self.new_token("generateAccessToken").body)["access_token"]
        return Reply(200, dict(accessToken=token, expireTime=stamp(self.world.wall() + self.key_lifetime)))

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def parse(self, request):
        if request.path == "/token":
            return "token", {k: v for k, v in request.form() if k not in ("assertion", "subject_token")}
        if request.path.endswith(self.account + ":generateAccessToken"):
            return "generateAccessToken", {}
        if request.path == "/v1/services/6F81-5844-456A/skus":
            return "listSkus", dict(request.query)
        if urllib.parse.unquote(request.path) == f"/v1/projects/-/serviceAccounts/{self.account}/keys/{self.key_id}":
            return "getServiceAccountKey", {}
        for method, path, name in ROUTES:
            self.place = path.fullmatch(request.path)
            if self.place and method == request.method:
                if name in ("aggregated", "list"):
                    kind = self.place["kind"]
                    name += kind[0].upper() + kind[1:]
                if name == "actOnInstance":
                    name = self.place["action"]
                return name, dict(request.json() or {}, query=dict(request.query))
        return "unknown", {}

    def token_of(self, parameters, request):
        return request.arg("requestId", "")

    def verify(self, request):
        if request.path == "/token":
            return
        given = request.header("Authorization")
        if self.tokens.get(given.removeprefix("Bearer "), 0) < self.world.wall():
            raise self.refusal("auth", {})

    def render(self, r, request):
        if request.path == "/token":
            return Reply(
                r.status,
                dict(error=r.code if r.code.startswith("invalid") else "temporarily_unavailable",
                     error_description=r.message), headers=r.headers)
        return Reply(
            r.status,
            dict(error=dict(
                code=r.status, message=r.message, status=r.more.get("word", "UNKNOWN"), errors=[
                    dict(message=r.message, domain="usageLimits" if r.status == 403 else "global", reason=r.code)
                ])), headers=r.headers)

    def invalid(self, message):
        return refusal(400, "invalid", message, "INVALID_ARGUMENT")

    def absent(self, what):
        return refusal(404, "notFound", f"The resource '{what}' was not found", "NOT_FOUND")

    def run(self, operation, p, request):
        if operation == "token":
            form = dict(request.form())
            return self.exchange(form) if form.get("grant_type") == self.EXCHANGE else self.grant(request)
        if operation == "generateAccessToken":
            return self.stand_in(request)
        if operation == "listSkus":
            return self.list_skus(request)
        if operation == "getServiceAccountKey":
            return self.service_account_key(request)
        if operation == "unknown":
            raise self.absent(request.path)
        if self.place["project"] != self.project:
            raise refusal(403, "forbidden", f"Required permission for 'projects/{self.place['project']}'",
                          "PERMISSION_DENIED")
        zone = self.place.groupdict().get("zone")
        if zone and zone not in [z for zones in ZONES.values() for z in zones]:
            raise self.invalid(f"Invalid value for field 'zone': '{zone}'. Unknown zone.")
        if request.body and request.json() is None:
            raise refusal(400, "parseError", "Parse Error", "INVALID_ARGUMENT")
        if operation.startswith(("aggregated", "list")) and self.place.groupdict().get("kind"):
            return self.listing(operation.startswith("aggregated"), request)
        if operation in ("stop", "start", "setMachineType", "setLabels"):
            return self.act(operation, request)
        return getattr(self, operation)(request)

    def service_account_key(self, request):
        return Reply(
            200,
            dict(name=request.path.removeprefix("/v1/"), keyAlgorithm="KEY_ALG_RSA_2048", keyOrigin="GOOGLE_PROVIDED",
                 keyType="USER_MANAGED", validAfterTime=stamp(self.key_made()),
                 validBeforeTime="9999-12-31T23:59:59Z"))

    # Tokens.

    def grant(self, request):
        form = dict(request.form())
        bad = lambda why, code="invalid_grant": Refusal(400, code, why)
        if form.get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer":
            raise bad("Invalid grant_type: " + str(form.get("grant_type")), "invalid_request")
        try:
            head, claims, signature = form.get("assertion", "").split(".")
            told, sworn = (json.loads(signatures.unbase64url(part)) for part in (head, claims))
            signature = signatures.unbase64url(signature)
        except ValueError as e:
            raise bad("Invalid JWT: it could not be parsed") from e
        if told.get("alg") != "RS256" or sworn.get("iss") != self.account:
            raise bad("Invalid grant: account not found")
        if told.get("kid", self.key_id) != self.key_id or "=" in form["assertion"] or not signatures.rs256_verify(
                f"{head}.{claims}".encode(), signature, self.rsa.modulus, EXPONENT):
            raise bad("Invalid JWT Signature.")
        if sworn.get("aud") not in (self.url + "/token", "https://oauth2.googleapis.com/token"):
            raise bad("Invalid JWT: Failed audience check.")
        if not set(str(sworn.get("scope", "")).split()) & SCOPES:
            raise bad(f"Invalid OAuth scope or ID token audience provided: {sworn.get('scope')}", "invalid_scope")
        begun, ends, now = sworn.get("iat", 0), sworn.get("exp", 0), self.world.wall()
        if abs(now - begun) > 300 or not begun < ends <= begun + 3600:
            raise bad(
                "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your "
                "iat and exp values in the JWT claim.")
        return self.new_token("assertion")


if __name__ == "__main__":
    main(Gcp)
