"""Roles at AWS: what STS, instances and containers lend, and the ways in which Amazon's tools find it."""
from base import Refusal, Reply
from lending import TOKEN, Lending, as_json, way, wrong
from world import stamp


class Roles(Lending):

    SESSION_PATH, SESSION_LIFETIME = "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds"
    SESSION_HEADER, SESSION_NEEDED = "X-aws-ec2-metadata-token", True
    ROLES = "/latest/meta-data/iam/security-credentials/"
    ROLE_ARN = "arn:aws:iam::123456789012:role/rille"

    def lent_document(self, by, token="Token"):
        id, secret, session, end = self.lend(by)
        return {"AccessKeyId": id, "SecretAccessKey": secret, token: session, "Expiration": stamp(end)}

    def host_metadata(self, request, path):
        if path == "/container/keys":  # what a container asks, with the word that it has in a file
            if request.header("Authorization") != self.identity_token:
                return Reply(401, "", "text/plain")
            return Reply(200, dict(self.lent_document("container"), RoleArn=self.ROLE_ARN))
        return super().host_metadata(request, path)

    def assume(self, operation, p, request):
        """AssumeRole, and AssumeRoleWithWebIdentity, which is not signed."""
        if p.get("RoleArn") != self.ROLE_ARN or not p.get("RoleSessionName"):
            raise Refusal(403, "AccessDenied", f"User is not authorized to perform: sts:{operation}")
        if operation == "AssumeRole" and p.get("ExternalId") != "partner":
            raise Refusal(403, "AccessDenied", "User is not authorized to perform: sts:AssumeRole")
        if operation != "AssumeRole" and p.get("WebIdentityToken") != self.identity_token:
            raise Refusal(400, "InvalidIdentityToken", "No OpenIDConnect provider found in your account")
        return dict(Credentials=self.lent_document(operation, "SessionToken"),
                    AssumedRoleUser=dict(Arn=self.ROLE_ARN, AssumedRoleId="AROA:rille"))

    def ways(self):
        own = f"aws_access_key_id = {self.key}\naws_secret_access_key = {self.secret}\n"
        token = {TOKEN: self.identity_token}
        work, host = dict(AWS_PROFILE="work"), self.at_host()
        role = f"[profile work]\nrole_arn = {self.ROLE_ARN}\nexternal_id = partner\n"
        process = as_json(Version=1, AccessKeyId=self.key2, SecretAccessKey=self.secret2, SessionToken=self.session)
        return [
            way("web identity", "web identity of " + self.ROLE_ARN,
                dict(AWS_ROLE_ARN=self.ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE="{home}/token"), token, TOKEN),
            way("a profile's keys", "profile 'default'", files={".aws/credentials": "[default]\n" + own}),
            way("a profile's role, by another profile", "profile 'work', " + self.ROLE_ARN, work,
                {".aws/config": role + "source_profile = base\n", ".aws/credentials": "[base]\n" + own}),
            way("a profile's role, by a chain of profiles", "profile 'work'", work, {
                ".aws/config": role + "source_profile = middle\n" + role.replace("work", "middle") +
                               "source_profile = middle\n",
                ".aws/credentials": "[middle]\n" + own}),
            way("a profile's role, by web identity", "profile 'work', " + self.ROLE_ARN, work,
                dict(token, **{".aws/config": role + "web_identity_token_file = {home}/token\n"}), TOKEN),
            way("a profile's role, by this machine", "profile 'work', " + self.ROLE_ARN, work,
                {".aws/config": role + "credential_source = Ec2InstanceMetadata\n"}, metadata=host),
            way("a profile's program", "profile 'work'", work, {
                ".aws/config": "[profile work]\ncredential_process = cat {home}/keys\n", "keys": process}),
            way("a container", "this container's role", dict(AWS_CONTAINER_CREDENTIALS_RELATIVE_URI="/container/keys",
                AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE="{home}/token"), token, TOKEN, container=host),
            way("a container's whole address", "this container's role",
                dict(AWS_CONTAINER_CREDENTIALS_FULL_URI=host + "/container/keys",
                     AWS_CONTAINER_AUTHORIZATION_TOKEN=self.identity_token)),
            way("this machine", "this machine's role " + self.ROLE, metadata=host),
        ] + self.sso_ways()

    def wrong_ways(self):
        work, config = dict(AWS_PROFILE="work"), ".aws/config"
        own = f"aws_access_key_id = {self.key}\naws_secret_access_key = {self.secret}\n"
        role = f"[profile work]\nrole_arn = {self.ROLE_ARN}\nexternal_id = partner\nsource_profile = base\n"
        keys = dict(Version=1, AccessKeyId=self.key2, SecretAccessKey=self.secret2, SessionToken=self.session)

        def program(command, printed):
            return {config: f"[profile work]\ncredential_process = {command}\n", "keys": printed}

        return [
            wrong("a role that wants a code", "auth", "needs an MFA code at each login (mfa_serial)",
                  "export-credentials --profile work --format env", work,
                  {config: role + "mfa_serial = arn:aws:iam::123456789012:mfa/me\n",
                   ".aws/credentials": "[base]\n" + own}),
            wrong("a program that fails, and says its keys", "auth", "of the AWS profile 'work' ended with exit code 3",
                  "run it by hand", work, program("cat {home}/keys >&2; exit 3", as_json(**keys))),
            wrong("a program that is not there", "auth", "ended with exit code 127", "run it by hand", work,
                  program("{home}/nothing", "")),
            wrong("a program that prints more", "auth", "printed something other than JSON", "run it by hand", work,
                  program("cat {home}/keys >&2; cat {home}/keys", "welcome " + as_json(**keys))),
            wrong("a program that prints nothing", "auth", "printed nothing", "run it by hand", work,
                  program("true", "")),
            wrong("a program of another version", "auth", "of a version other than 1", '"Version": 1', work,
                  program("cat {home}/keys", as_json(**dict(keys, Version=2)))),
            wrong("a program whose keys are over", "auth", "printed keys that expired", "log in again", work,
                  program("cat {home}/keys", as_json(**keys, Expiration=stamp(self.world.wall() - 60)))),
        ] + self.wrong_sso_ways()
