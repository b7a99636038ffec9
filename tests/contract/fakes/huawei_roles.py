"""Agencies and identity providers at Huawei Cloud: what IAM and machines lend, and how its SDKs find it."""
from base import Refusal
from lending import TOKEN, Lending, way
from world import stamp


class Roles(Lending):

    SESSION_PATH, SESSION_LIFETIME = "/meta-data/latest/api/token", "X-Metadata-Token-Ttl-Seconds"
    SESSION_HEADER, ROLES = "X-Metadata-Token", "/openstack/latest/securitykey"

    def lent_document(self, by):
        id, secret, session, end = self.lend(by)
        end = stamp(end).replace("Z", ".678000Z")
        return dict(credential=dict(access=id, secret=secret, securitytoken=session, expires_at=end))

    def createTokenById(self, p, request):
        if request.header("X-Idp-Id") != "rille-idp" or p["auth"]["id_token"]["id"] != self.identity_token:
            raise Refusal(401, "IAM.0001", "The ID token is not valid.")
        return 201, dict(token=dict(methods=["mapped"]))

    def createTemporaryKey(self, p, request):
        identity = p["auth"]["identity"]
        if identity["methods"] != ["token"] or identity["token"]["id"] != self.iam_token:
            raise Refusal(401, "IAM.0001", "The token is not valid.")
        return 201, self.lent_document("identity provider")

    def ways(self):
        ini = f"[basic]\nak = {self.key}\nsk = {self.secret}\n"
        return [
            way("an identity provider", "identity provider rille-idp",
                dict(HUAWEICLOUD_SDK_IDP_ID="rille-idp", HUAWEICLOUD_SDK_ID_TOKEN_FILE="{home}/token"),
                {TOKEN: self.identity_token}, TOKEN),
            way("the SDKs' file", ".huaweicloud/credentials", files={".huaweicloud/credentials": ini}),
            way("this machine", "this machine's role", metadata=self.at_host()),
        ]
