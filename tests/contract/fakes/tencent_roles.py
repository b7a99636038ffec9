"""Roles at Tencent Cloud: what STS and machines lend, and the ways in which its tools find it."""
from base import Refusal
from lending import TOKEN, Lending, as_json, way
from world import stamp


class Roles(Lending):

    ROLES, ROLE_ARN = "/latest/meta-data/cam/security-credentials/", "qcs::cam::uin/100000000001:roleName/rille"

    def lent_document(self, by):
        id, secret, session, end = self.lend(by)
        return dict(Code="Success", TmpSecretId=id, TmpSecretKey=secret, Token=session, ExpiredTime=int(end),
                    Expiration=stamp(end))

    def AssumeRole(self, p):
        if p["RoleArn"] != self.ROLE_ARN:
            raise Refusal(200, "ResourceNotFound.RoleNotFound", "The role does not exist.")
        told = self.lent_document("AssumeRole")
        return dict(ExpiredTime=told["ExpiredTime"], Expiration=told["Expiration"],
                    Credentials={k: told[k] for k in ("TmpSecretId", "TmpSecretKey", "Token")})

    def AssumeRoleWithWebIdentity(self, p):
        if p["ProviderId"] != "tke" or p["WebIdentityToken"] != self.identity_token:
            raise Refusal(200, "InvalidParameter.WebIdentityTokenError", "The token is not valid.")
        return self.AssumeRole(p)

    def ways(self):
        own, path = dict(secretId=self.key, secretKey=self.secret), ".tccli/{}.credential"
        lent = dict(secretId=self.key2, secretKey=self.secret2, token=self.session)
        ini = f"[default]\nsecret_id = {self.key}\nsecret_key = {self.secret}\n"
        role = {"role-arn": self.ROLE_ARN, "role-session-name": "me"}
        return [
            way("TKE", "OIDC token of " + self.ROLE_ARN,
                dict(TKE_REGION="ap-guangzhou", TKE_PROVIDER_ID="tke", TKE_ROLE_ARN=self.ROLE_ARN,
                     TKE_WEB_IDENTITY_TOKEN_FILE="{home}/token"), {TOKEN: self.identity_token}, TOKEN),
            way("the SDKs' file", ".tencentcloud/credentials", files={".tencentcloud/credentials": ini}),
            way("tccli", ".tccli/default.credential", files={path.format("default"): as_json(**own)}),
            way("tccli: another profile, lent keys", ".tccli/work.credential", dict(TCCLI_PROFILE="work"),
                {path.format("work"): as_json(**lent, expiresAt=int(self.world.wall()) + 3600)}),
            way("tccli: a role", "default.credential, " + self.ROLE_ARN,
                files={path.format("default"): as_json(**own, **role)}),
            way("this machine", "this machine's role " + self.ROLE, metadata=self.at_host()),
        ]
