"""The vendors' own tools find keys on the fakes in the ways that the fakes tell of: what the fakes lend is what those
tools expect. Not Alibaba's, and of Tencent's only the machine: their STS is asked at its own https address."""
import logging, os, shutil, tempfile
from pathlib import Path
from unittest import mock

from sdk_base import FakeProcess, Sdk


class Keys(Sdk):
    """Without a name it is no case of its own."""
    PREFIXES = ()

    def setUp(self):
        if self.name:
            super().setUp()

    def home(self, way):
        """The environment of one way, with its files in a home of its own."""
        home = tempfile.mkdtemp(prefix="rille-sdk-keys-")
        self.addCleanup(shutil.rmtree, home, True)
        fill = lambda text: text.replace("{home}", home)
        for name, text in way["files"].items():
            Path(home, name).parent.mkdir(parents=True, exist_ok=True)
            Path(home, name).write_text(fill(text))
            Path(home, name).chmod(0o700 if name.startswith("bin/") else 0o600)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(self.PREFIXES)}
        return dict(kept, HOME=home, **{k: fill(v) for k, v in way["env"].items()})

    def ways(self):
        self.assertGreater(len(self.fake.told["ways"]), 2)
        return self.fake.told["ways"]

    def loans(self):
        return len(self.fake.state()["loans"])


class AwsKeys(Keys):
    name, PREFIXES = "aws", ("AWS_", )

    def test(self):
        import boto3, botocore.utils
        from botocore.credentials import SSOProvider
        from botocore.tokens import SSOTokenProvider
        url = self.fake.url()
        for way in self.ways():
            more = dict(AWS_ENDPOINT_URL_STS=url, AWS_DEFAULT_REGION="us-east-1", AWS_EC2_METADATA_DISABLED="true",
                        AWS_ENDPOINT_URL_SSO=url, AWS_ENDPOINT_URL_SSO_OIDC=url)
            host = way["endpoints"].get("metadata")
            if host:
                more.update(AWS_EC2_METADATA_SERVICE_ENDPOINT=host, AWS_EC2_METADATA_DISABLED="false")
            at = url.removeprefix("http://") + "/_metadata/host"
            env = dict(self.home(way), **more)
            cache = env["HOME"] + "/.aws/sso/cache"  # which botocore has looked for when it was imported
            with self.subTest(way["name"]), mock.patch.dict(os.environ, env, clear=True), \
                    mock.patch.object(botocore.utils.ContainerMetadataFetcher, "IP_ADDRESS", at), \
                    mock.patch.object(SSOProvider, "_SSO_TOKEN_CACHE_DIR", cache), \
                    mock.patch.object(SSOTokenProvider, "_SSO_TOKEN_CACHE_DIR", cache):
                before = self.loans()
                who = boto3.Session().client("sts").get_caller_identity()
                self.assertEqual(who["Account"], "123456789012")
                self.assertEqual(self.loans() > before, "arn:" in way["found"] or "role" in way["name"] or
                                 way["name"].startswith(("web", "a container", "this machine", "SSO")))


class GcpKeys(Keys):
    name, PREFIXES = "gcp", ("GOOGLE_", "CLOUDSDK_")

    def test(self):
        import google.auth
        import google.auth.transport.requests
        for way in self.ways():
            more = dict(NO_GCE_CHECK="true", GOOGLE_CLOUD_PROJECT="rille-fake")
            if way["endpoints"] or "impersonated" in way["found"]:
                continue  # Google's own asks at its own address
            with self.subTest(way["name"]), mock.patch.dict(os.environ, dict(self.home(way), **more), clear=True):
                before = self.loans()
                found, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
                found.refresh(google.auth.transport.requests.Request())
                self.assertIn(found.token, self.fake.state()["secrets"])
                self.assertGreater(self.loans(), before)


class AzureKeys(Keys):
    name, PREFIXES = "azure", ("AZURE_", )

    def test(self):
        from azure.identity import AzureCliCredential, ManagedIdentityCredential
        for way in self.ways():
            az = "az account" in way["found"]
            if not way["endpoints"] and not az:
                continue  # Azure's own wants https
            more = dict() if az else dict(AZURE_POD_IDENTITY_AUTHORITY_HOST=way["endpoints"]["metadata"])
            with self.subTest(way["name"]), mock.patch.dict(os.environ, dict(self.home(way), **more), clear=True):
                tenant = way["settings"].get("tenant", "")
                account = dict(tenant_id=tenant) if tenant else dict(subscription=os.environ["AZURE_SUBSCRIPTION_ID"])
                credential = AzureCliCredential(**account) if az else ManagedIdentityCredential(
                    client_id=os.environ.get("AZURE_CLIENT_ID"))
                slash = "" if az else "/"  # of a resource that ends with one
                token = credential.get_token(f"https://management.azure.com{slash}/.default")
                self.assertIn(token.token, self.fake.state()["secrets"])

    def test_certificate(self):
        """By https: what it swears is what the fake wants of Rille, too."""
        from azure.identity import EnvironmentCredential
        fake = FakeProcess("azure", "--tls")
        self.addCleanup(fake.close)
        ways = [w for w in fake.told["ways"] if "certificate" in w["name"]]
        self.assertEqual(len(ways), 2)
        for way in ways:
            with self.subTest(way["name"]), mock.patch.dict(os.environ, self.home(way), clear=True):
                credential = EnvironmentCredential(authority=fake.host(), disable_instance_discovery=True,
                                                   connection_verify=fake.told["ca"])
                self.assertTrue(credential.get_token("https://management.azure.com/.default").token.startswith("eyJ0"))


class HuaweiKeys(Keys):
    name, PREFIXES = "huawei", ("HUAWEICLOUD_", )

    def test(self):
        from huaweicloudsdkcore.auth.internal import MetadataAccessor
        from huaweicloudsdkcore.auth.provider import CredentialProviderChain
        from huaweicloudsdkcore.exceptions.exception_handler import DefaultExceptionHandler
        from huaweicloudsdkcore.http.http_client import HttpClient
        from huaweicloudsdkcore.http.http_config import HttpConfig
        from huaweicloudsdkcore.http.http_handler import HttpHandler
        quiet = logging.getLogger("huawei")
        for way in self.ways():
            host = mock.patch.object(MetadataAccessor, "_METADATA_ENDPOINT", self.fake.url() + "/_metadata/host")
            with self.subTest(way["name"]), mock.patch.dict(os.environ, self.home(way), clear=True), host:
                found = CredentialProviderChain.get_basic().get_credentials().with_iam_endpoint(self.fake.url())
                found.process_sts(HttpClient(HttpConfig(), HttpHandler(), DefaultExceptionHandler(), quiet))
                own = ".huaweicloud" in way["found"]
                self.assertIn(found.sk, self.fake.secrets if own else self.fake.state()["secrets"])
                self.assertEqual(bool(found.security_token), not own)


class TencentKeys(Keys):
    name, PREFIXES = "tencent", ("TENCENTCLOUD_", "TKE_")

    def test(self):
        from tencentcloud.common.credential import CVMRoleCredential
        role = self.fake.url() + "/_metadata/host/latest/meta-data/cam/security-credentials/"
        with mock.patch.object(CVMRoleCredential, "_role_endpoint", role):
            found = CVMRoleCredential().get_credential()
            self.assertIn(found.secret_key, self.fake.state()["secrets"])
            self.assertIn(found.token, self.fake.state()["secrets"])
