"""IAM Identity Center at AWS: the portal that gives a role's keys, the service that renews a sign-in, and what `aws sso
login` leaves for Amazon's tools. Facts: the service models of sso and sso-oidc 2019-06-10, and botocore's cache."""
import hashlib

from base import Refusal, Reply
from lending import as_json, way, wrong
from world import stamp

START_URL = "https://corp.awsapps.example/start"
SESSION = f"[sso-session corp]\nsso_region = us-east-1\nsso_start_url = {START_URL}\n" \
          "sso_registration_scopes = sso:account:access\n"


class Sso:

    SSO_PATHS = {"/federation/credentials": "GetRoleCredentials", "/token": "CreateToken"}
    SSO_ROLE = "rille"

    def prepare_sso(self):
        word = self.world.word
        self.sso_tokens, self.sso_refresh, self.sso_client = {}, set(), (word(22), word(300))
        self.lent.append(self.sso_client[1])

    def sso_secret(self, kept):
        """A new token that is taken; of the kind that renews a sign-in, or a sign-in's own with its end."""
        secret = "aoa" + self.world.word(180)
        self.lent.append(secret)
        if kept is self.sso_refresh:
            kept.add(secret)
        else:
            kept[secret] = self.world.wall() + 8 * 3600
        return secret

    def sso(self, operation, request):
        if operation == "GetRoleCredentials":
            if self.sso_tokens.get(request.header("x-amz-sso_bearer_token"), 0) < self.world.wall():
                raise Refusal(401, "UnauthorizedException", "Session token not found or invalid")
            if request.method != "GET" or set(dict(request.query)) != {"role_name", "account_id"}:
                raise Refusal(400, "InvalidRequestException", "Invalid request")
            if (request.arg("role_name"), request.arg("account_id")) != (self.SSO_ROLE, self.account):
                raise Refusal(403, "ForbiddenException", "No access")
            id, secret, session, end = self.lend(operation)
            return Reply(200, dict(roleCredentials=dict(accessKeyId=id, secretAccessKey=secret, sessionToken=session,
                                                        expiration=int(end * 1000))))
        p = request.json() or {}
        if request.method != "POST" or p.get("grantType") != "refresh_token":
            raise Refusal(400, "UnsupportedGrantTypeException", error="unsupported_grant_type")
        if (p.get("clientId"), p.get("clientSecret")) != self.sso_client:
            raise Refusal(401, "InvalidClientException", error="invalid_client")
        if p.get("refreshToken") not in self.sso_refresh:
            raise Refusal(400, "InvalidGrantException", "Invalid refresh token provided", error="invalid_grant")
        self.sso_refresh.discard(p["refreshToken"])  # each serves once
        self.loans.append(operation)
        return Reply(200, dict(accessToken=self.sso_secret(self.sso_tokens), expiresIn=8 * 3600, tokenType="Bearer",
                               refreshToken=self.sso_secret(self.sso_refresh)))

    def refused_by_sso(self, r):
        said = dict(error=r.more["error"], error_description=r.message) if "error" in r.more else dict(
            message=r.message)
        return Reply(r.status, said, headers=dict(r.headers, **{"x-amzn-ErrorType": r.code + ":http://amazon/"}))

    def sign_in(self, name="corp", ends_s=8 * 3600, token="", **more):
        """The file that a sign-in leaves, as (path below the home, text)."""
        file = ".aws/sso/cache/" + hashlib.sha1(name.encode()).hexdigest() + ".json"
        end = stamp(self.world.wall() + ends_s)
        told = dict(startUrl=START_URL, region="us-east-1", accessToken=token or self.sso_secret(self.sso_tokens),
                    expiresAt=end.replace("Z", "UTC") if name == START_URL else end, **more)
        return {file: as_json(**told)}

    def renewable(self, refresh_token):
        """What is in it where it can be renewed."""
        return dict(clientId=self.sso_client[0], clientSecret=self.sso_client[1], refreshToken=refresh_token,
                    registrationExpiresAt=stamp(self.world.wall() + 86400))

    def sso_profile(self, role="", more=SESSION):
        return f"[profile work]\nsso_session = corp\nsso_account_id = {self.account}\n" \
               f"sso_role_name = {role or self.SSO_ROLE}\n{more}"

    def sso_ways(self):
        work, config = dict(AWS_PROFILE="work"), ".aws/config"
        found = f"profile 'work', the role {self.SSO_ROLE} of the account {self.account} by SSO"
        older = f"[profile work]\nsso_start_url = {START_URL}\nsso_region = us-east-1\nsso_account_id = " \
                f"{self.account}\nsso_role_name = {self.SSO_ROLE}\n"
        role = f"[profile top]\nrole_arn = {self.ROLE_ARN}\nexternal_id = partner\nsource_profile = work\n"
        over = lambda: self.sign_in(ends_s=-60, token="over", **self.renewable(self.sso_secret(self.sso_refresh)))
        return [
            way("SSO", found, work, {config: self.sso_profile(), **self.sign_in()}),
            way("SSO, without a session", found, work, {config: older, **self.sign_in(START_URL)}),
            way("SSO, a sign-in that is renewed", found, work, {config: self.sso_profile(), **over()}),
            way("SSO, and a role by it", "profile 'top', " + self.ROLE_ARN, dict(AWS_PROFILE="top"),
                {config: role + self.sso_profile(), **self.sign_in()}),
        ]

    def wrong_sso_ways(self):
        work, config, login = dict(AWS_PROFILE="work"), ".aws/config", "aws sso login --profile work"
        profile = {config: self.sso_profile()}
        refused = self.sign_in(ends_s=-60, token="over", **self.renewable("used-up"))
        return [
            wrong("SSO: nobody has signed in", "auth", "there is no login", login, work, profile),
            wrong("SSO: the sign-in is over", "auth", "its login has expired at", login, work,
                  {**profile, **self.sign_in(ends_s=-60)}),
            wrong("SSO: signed out elsewhere", "auth", "login has expired: aws GetRoleCredentials: Unauthorized", login,
                  work, {**profile, **self.sign_in(token="signed-out")}),
            wrong("SSO: it cannot be renewed", "auth", "and renewing it failed: aws CreateToken: InvalidGrant", login,
                  work, {**profile, **refused}),
            wrong("SSO: another's role", "auth", "ForbiddenException: No access", "may this user", work,
                  {config: self.sso_profile("other"), **self.sign_in()}),
            wrong("SSO: no such session", "config", "the sso_session 'corp', which has no section",
                  "aws configure sso", work, {config: self.sso_profile(more="")}),
            wrong("SSO: the region is missing", "config", "lacks sso_region", "aws configure sso", work,
                  {config: self.sso_profile(more=SESSION.replace("sso_region", "sso_place"))}),
            wrong("SSO: a file of something else", "auth", "was not written by `aws sso login`", login, work,
                  {**profile, **{f: "{}" for f in self.sign_in()}}),
        ]
