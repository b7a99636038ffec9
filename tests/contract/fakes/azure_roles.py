"""Who needs no client secret at Azure: workloads, applications with a certificate, who is logged in with `az`, and
machines; and the ways in which its tools find them. Facts: MSAL for Python and azure-identity (assertions of RS256, x5t
by SHA-1)."""
import base64, hashlib, json

import signatures
from base import Refusal, Reply
from lending import TOKEN, as_json, way, wrong
from rsa_key import EXPONENT, RsaKey, self_signed

LOGGED_IN = ".azure/azureProfile.json"
# Logged in to several accounts, of which it takes one by these words; as azure-identity says them.
AZ = """#!/bin/sh
case "$*" in
"account get-access-token --output json --resource https://management.azure.com {}") ;;
*--subscription*) echo "ERROR: Subscription not found. Check the spelling and casing and try again." >&2; exit 1 ;;
*) echo "ERROR: unrecognized arguments: $*" >&2; exit 2 ;;
esac
"""
OVER = """ERROR: AADSTS70043: The refresh token has expired or is invalid due to sign-in frequency checks.
To re-authenticate, please run:
az login
"""


class Roles:

    ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

    def prepare_lending(self):
        self.identity_token = ".".join(["eyJhbGciOiJSUzI1NiJ9", self.world.word(120), self.world.word(80)])
        self.lent.append(self.identity_token)
        self.application = RsaKey(self.world.word(8))
        self.certificate = self_signed(self.application, "127.0.0.1", self.world.wall())
        self.lent += self.application.pem.split("\n")[1:-2]

    def new_token(self, by, form=int):
        token = self.token_for(by)
        return Reply(
            200, dict(token_type="Bearer", expires_in=form(self.key_lifetime - 1), ext_expires_in=form(3599),
                      access_token=token))

    def token_for(self, by):
        token = "eyJ0eXAi." + self.world.word(120) + "." + self.world.word(40)
        self.tokens[token] = self.world.wall() + 3599
        self.loans.append(by)
        return token

    def host_metadata(self, request, path):
        if path != "/metadata/identity/oauth2/token" or request.header("Metadata").lower() != "true":
            return Reply(400, dict(error="invalid_request"))
        if request.arg("resource") != "https://management.azure.com/" or request.arg("client_id",
                                                                                      self.client) != self.client:
            return Reply(400, dict(error="invalid_resource", error_description="Identity not found"))
        return self.new_token("machine", str)

    def discovery(self):
        """Where tokens are: MSAL asks before it swears."""
        at = f"{self.url}/{self.tenant}"
        return Reply(200, dict(token_endpoint=at + "/oauth2/v2.0/token", issuer=at + "/v2.0",
                               authorization_endpoint=at + "/oauth2/v2.0/authorize"))

    def check_assertion(self, form, request):
        """Raises unless it is the workload's token, or one that the application's certificate has signed."""
        if form.get("client_assertion_type") != self.ASSERTION:
            raise Refusal(400, "invalid_request", "AADSTS900144: client_assertion_type is not known.")
        if form["client_assertion"] == self.identity_token:
            return
        try:
            head, claims, signature = form["client_assertion"].split(".")
            told, sworn = (json.loads(signatures.unbase64url(part)) for part in (head, claims))
            signature = signatures.unbase64url(signature)
        except ValueError as e:
            raise Refusal(401, "invalid_client", "AADSTS50027: JWT token is invalid or malformed.") from e
        der = base64.b64decode("".join(self.certificate.split("\n")[1:-2]))
        thumbprint = base64.urlsafe_b64encode(hashlib.sha1(der).digest()).decode().rstrip("=")
        if told.get("alg") != "RS256" or str(told.get("x5t")).rstrip("=") != thumbprint:
            raise Refusal(401, "invalid_client", "AADSTS700027: The certificate with identifier used to sign the "
                          "client assertion is not registered on application.")
        if told.get("x5c", [base64.b64encode(der).decode()]) != [base64.b64encode(der).decode()]:
            raise Refusal(401, "invalid_client", "AADSTS700027: The chain is another one.")
        if not signatures.rs256_verify(f"{head}.{claims}".encode(), signature, self.application.modulus, EXPONENT):
            raise Refusal(401, "invalid_client", "AADSTS700027: Client assertion contains an invalid signature.")
        now = self.world.wall()
        at = request.path.partition("/oauth2/")[0]
        if not sworn.get("aud", "").endswith(at + "/oauth2/v2.0/token") or not sworn.get("jti"):
            raise Refusal(401, "invalid_client", "AADSTS700024: Client assertion audience claim does not match.")
        if (sworn.get("iss"), sworn.get("sub")) != (self.client, self.client):
            raise Refusal(401, "invalid_client", "AADSTS700021: Client assertion is of another application.")
        if not now < sworn.get("exp", 0) <= now + 3600 or sworn.get("nbf", now) > now + 300:
            raise Refusal(401, "invalid_client", "AADSTS700024: Client assertion is not within its valid time range.")

    def ways(self):
        subscription = dict(AZURE_SUBSCRIPTION_ID=self.subscription)
        application = dict(subscription, AZURE_TENANT_ID=self.tenant, AZURE_CLIENT_ID=self.client)
        certificate = dict(application, AZURE_CLIENT_CERTIFICATE_PATH="{home}/app.pem")
        pem = {"app.pem": self.application.pem + self.certificate}
        path = dict(subscription, PATH="{home}/bin:/usr/bin:/bin")
        token = self.token_for("az")
        said = dict(accessToken=token, subscription=self.subscription, tenant=self.tenant, tokenType="Bearer",
                    expiresOn="2199-01-01 00:00:00.000000")
        logged_in = {LOGGED_IN: "\ufeff" + as_json(subscriptions=[dict(id=self.subscription)]),
                     "bin/az": AZ.format("--subscription " + self.subscription) + "cat {home}/printed\n"}
        of_tenant = {**logged_in, "bin/az": AZ.format("--tenant " + self.tenant) + "cat {home}/printed\n"}
        stranger = dict(subscription, AZURE_CLIENT_ID=self.world.word(36))
        metadata = self.url + "/_metadata/host"
        return [
            way("a workload", "the workload's token", dict(application, AZURE_FEDERATED_TOKEN_FILE="{home}/token"),
                {TOKEN: self.identity_token}, TOKEN),
            way("a certificate", "AZURE_CLIENT_CERTIFICATE_PATH", certificate, pem),
            way("a certificate and its chain", "AZURE_CLIENT_CERTIFICATE_PATH",
                dict(certificate, AZURE_CLIENT_SEND_CERTIFICATE_CHAIN="true"), pem),
            way("az", "az account get-access-token", path,
                dict(logged_in, printed=as_json(**said, expires_on=int(self.world.wall()) + 3599))),
            way("an older az", "az account get-access-token", path, dict(logged_in, printed=as_json(**said))),
            way("this machine", "this machine's own identity", subscription, metadata=metadata),
            way("one identity of this machine", "this machine's own identity",
                dict(subscription, AZURE_CLIENT_ID=self.client), metadata=metadata),
            way("this machine, whoever is logged in with az", "this machine's own identity", path, logged_in,
                metadata=metadata),
            way("az, in a tenant of the settings", "az account get-access-token", path,
                dict(of_tenant, printed=as_json(**said)), settings=dict(tenant=self.tenant)),
            way("az, on a machine without that identity", "az account get-access-token", dict(path, **stranger),
                dict(logged_in, printed=as_json(**said)), metadata=metadata),
        ]

    def wrong_ways(self):
        subscription = dict(AZURE_SUBSCRIPTION_ID=self.subscription)
        certificate = dict(subscription, AZURE_TENANT_ID=self.tenant, AZURE_CLIENT_ID=self.client,
                           AZURE_CLIENT_CERTIFICATE_PATH="{home}/app.pem")
        path, pem = dict(subscription, PATH="{home}/bin:/usr/bin:/bin"), self.application.pem
        old = self_signed(self.application, "127.0.0.1", self.world.wall() - 6 * 31_536_000)
        other = self_signed(RsaKey(self.world.word(8)), "127.0.0.1", self.world.wall())
        az = {LOGGED_IN: as_json(subscriptions=[dict(id=self.subscription)])}
        return [
            wrong("a certificate without its key", "auth", "there is no private key in the PEM",
                  "AZURE_CLIENT_CERTIFICATE_PASSWORD", certificate, {"app.pem": self.certificate}),
            wrong("a key without its certificate", "auth", "there is no certificate that belongs to the private key",
                  "both in PEM", certificate, {"app.pem": pem + other}),
            wrong("a certificate that has ended", "auth", "expired at 20", "create a new one", certificate,
                  {"app.pem": pem + old}),
            wrong("a certificate that is not there", "io", "app.pem", "AZURE_CLIENT_CERTIFICATE_PATH names this file",
                  certificate, {}),
            wrong("az: the sign-in is over", "auth", "ended with exit code 1: ERROR: AADSTS70043", "az login", path,
                  {**az, "bin/az": f"#!/bin/sh\ncat >&2 <<'END'\n{OVER}END\nexit 1\n"}),
            wrong("az: it does not know the subscription", "auth", "Subscription not found", "az account list", path,
                  {**az, "bin/az": AZ.format("--subscription another")}),
            wrong("az: it says something else", "auth", "printed something other than JSON", "az login", path,
                  {**az, "bin/az": "#!/bin/sh\necho " + self.token_for("az") + "\n"}),
        ]
