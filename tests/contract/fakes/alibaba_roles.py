"""Roles at Alibaba Cloud: what STS and machines lend, and the ways in which its tools find it."""
from base import Refusal
from lending import TOKEN, Lending, as_json, way
from world import stamp


class Roles(Lending):

    SESSION_PATH, SESSION_LIFETIME = "/latest/api/token", "X-aliyun-ecs-metadata-token-ttl-seconds"
    SESSION_HEADER, ROLES = "X-aliyun-ecs-metadata-token", "/latest/meta-data/ram/security-credentials/"
    ROLE_ARN, PROVIDER_ARN = "acs:ram::1000000000000001:role/rille", "acs:ram::1000000000000001:oidc-provider/k8s"

    def lent_document(self, by):
        id, secret, session, end = self.lend(by)
        return dict(Code="Success", AccessKeyId=id, AccessKeySecret=secret, SecurityToken=session,
                    Expiration=stamp(end))

    def AssumeRole(self, p):
        if p["RoleArn"] != self.ROLE_ARN:
            raise Refusal(404, "EntityNotExist.Role", "The role does not exist.")
        return dict(Credentials=self.lent_document("AssumeRole"), AssumedRoleUser=dict(Arn=self.ROLE_ARN))

    def AssumeRoleWithOIDC(self, p):
        if p["OIDCProviderArn"] != self.PROVIDER_ARN or p["OIDCToken"] != self.identity_token:
            raise Refusal(400, "AuthenticationFail.OIDCToken.Invalid", "This OIDC token is invalid.")
        return self.AssumeRole(p)

    def ways(self):
        token, host = {TOKEN: self.identity_token}, self.at_host()
        own = dict(access_key_id=self.key, access_key_secret=self.secret)
        oidc = dict(oidc_provider_arn=self.PROVIDER_ARN, oidc_token_file="{home}/token")
        lent = dict(access_key_id=self.key2, access_key_secret=self.secret2, sts_token=self.session)

        def cli(mode, more=(), **fields):
            profiles = [dict(fields, name="rille", mode=mode), *more]
            return {".aliyun/config.json": as_json(current="rille", profiles=profiles)}

        def ini(type, **fields):
            lines = "".join(f"{k} = {v}\n" for k, v in dict(fields, type=type).items())
            return {".alibabacloud/credentials": "[default]\n" + lines}

        role = dict(ram_role_arn=self.ROLE_ARN, ram_session_name="me")
        return [
            way("OIDC", "OIDC token of " + self.ROLE_ARN,
                dict(ALIBABA_CLOUD_ROLE_ARN=self.ROLE_ARN, ALIBABA_CLOUD_OIDC_PROVIDER_ARN=self.PROVIDER_ARN,
                     ALIBABA_CLOUD_OIDC_TOKEN_FILE="{home}/token"), token, TOKEN),
            way("aliyun: AK", "profile 'rille' of aliyun", files=cli("AK", **own)),
            way("aliyun: StsToken", "profile 'rille' of aliyun", files=cli("StsToken", **lent)),
            way("aliyun: RamRoleArn", "aliyun, " + self.ROLE_ARN, files=cli("RamRoleArn", **own, **role)),
            way("aliyun: EcsRamRole", "machine's role other", files=cli("EcsRamRole", ram_role_name="other"),
                metadata=host),
            way("aliyun: RamRoleArnWithEcs", "aliyun, " + self.ROLE_ARN, files=cli("RamRoleArnWithEcs", **role),
                metadata=host),
            way("aliyun: OIDC", "aliyun, " + self.ROLE_ARN, files=dict(token, **cli("OIDC", **oidc, **role)),
                token=TOKEN),
            way("aliyun: ChainableRamRoleArn", "profile 'rille' of aliyun, " + self.ROLE_ARN,
                files=cli("ChainableRamRoleArn", [dict(own, name="base", mode="AK")], source_profile="base", **role)),
            way("the SDKs' file", ".alibabacloud/credentials", files=ini("access_key", **own)),
            way("the SDKs' file: a role", ".alibabacloud/credentials, " + self.ROLE_ARN,
                files=ini("ram_role_arn", role_arn=self.ROLE_ARN, role_session_name="me", **own)),
            way("this machine", "this machine's role " + self.ROLE, metadata=host),
        ]
