"""The vendors' own SDKs rent from the fakes: what they send is accepted, what they get is parsed, refusals are theirs.

usage: sdk_test.py VASTAI SIGN_TOOL [NAME ..], with a Python that has the SDKs (tests/requirements-sdk.txt); VASTAI:
Vast's command (tests/requirements-vast.txt). Each case: create, the same token again, describe, list in pages of two,
a refusal, a wrong secret, terminate; then nothing is alive.
"""
import json, sys, unittest

from sdk_base import DATA, Sdk
from sdk_keys import AwsKeys, AzureKeys, GcpKeys, HuaweiKeys, TencentKeys  # noqa: F401
from sdk_others import Azure, Gcp, Kubernetes  # noqa: F401
from sdk_rest import Runpod, Vast  # noqa: F401
from sdk_signers import SignerCase, Signers  # noqa: F401
from sdk_stores import StoreSigners  # noqa: F401


class Aws(Sdk):
    name = "aws"

    def client(self, service, secret=None):
        import boto3
        from botocore.config import Config
        return boto3.client(
            service, region_name="us-east-1",
            endpoint_url=self.settings["endpoints"][{"service-quotas": "servicequotas"}.get(service, service)],
            aws_access_key_id=self.env["AWS_ACCESS_KEY_ID"], aws_secret_access_key=secret or
            self.env["AWS_SECRET_ACCESS_KEY"], config=Config(retries=dict(total_max_attempts=1)))

    def test(self):
        from botocore.exceptions import ClientError
        ec2, ids = self.client("ec2"), []
        for n in range(3):
            request = dict(
                ImageId=self.settings["image"], InstanceType="g4dn.xlarge", MinCount=1, MaxCount=1, ClientToken=f"t{n}",
                UserData="#!/bin/sh\n", SubnetId=self.settings["subnet"],
                SecurityGroupIds=[self.settings["security_group"]], InstanceInitiatedShutdownBehavior="terminate",
                TagSpecifications=[dict(ResourceType="instance", Tags=[dict(Key="rille-lease", Value="a b+c/~é")])],
                InstanceMarketOptions=dict(MarketType="spot", SpotOptions=dict(MaxPrice="0.5")), BlockDeviceMappings=[
                    dict(DeviceName="/dev/sda1", Ebs=dict(VolumeSize=50, VolumeType="gp3", Encrypted=True))
                ], MetadataOptions=dict(HttpTokens="required"))
            made = ec2.run_instances(**request)["Instances"][0]
            self.assertEqual((made["State"]["Name"] in ("pending", "running"), made["InstanceLifecycle"]),
                             (True, "spot"))
            self.assertEqual(ec2.run_instances(**request)["Instances"][0]["InstanceId"], made["InstanceId"])
            ids.append(made["InstanceId"])
        with self.assertRaises(ClientError) as got:
            ec2.run_instances(**dict(request, InstanceType="g5.xlarge"))
        self.assertEqual(got.exception.response["Error"]["Code"], "IdempotentParameterMismatch")
        self.fake.control("set", page_size=2)
        pages = list(
            ec2.get_paginator("describe_instances").paginate(
                Filters=[dict(Name="tag:rille-lease", Values=["a b+c/~é"])], PaginationConfig=dict(PageSize=5)))
        self.assertEqual(len(pages), 2)
        self.assertEqual([i["InstanceId"] for p in pages for r in p["Reservations"] for i in r["Instances"]], ids)
        self.turn(10)
        ec2.get_waiter("instance_running").wait(InstanceIds=ids, WaiterConfig=dict(Delay=1, MaxAttempts=1))
        with self.assertRaises(ClientError) as got:
            self.client("ec2", "wrong").describe_instances()
        self.assertEqual(got.exception.response["Error"]["Code"], "SignatureDoesNotMatch")
        gone = ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"]
        self.assertEqual([g["PreviousState"]["Name"] for g in gone], ["running"] * 3)
        self.turn(10)
        ec2.get_waiter("instance_terminated").wait(InstanceIds=ids, WaiterConfig=dict(Delay=1, MaxAttempts=1))
        self.assertEqual(self.alive(), 0)

    def test_the_rest(self):
        ec2 = self.client("ec2")
        types = ec2.describe_instance_types(InstanceTypes=["p5.48xlarge"])["InstanceTypes"][0]
        self.assertEqual((types["GpuInfo"]["Gpus"][0]["Count"], types["VCpuInfo"]["DefaultVCpus"]), (8, 192))
        import datetime
        now = datetime.datetime.now(datetime.timezone.utc)
        price = ec2.describe_spot_price_history(InstanceTypes=["p5.48xlarge"], StartTime=now, EndTime=now,
                                                ProductDescriptions=["Linux/UNIX"])["SpotPriceHistory"][0]
        self.assertEqual(price["SpotPrice"], "13.843200")
        self.assertEqual(
            len(
                ec2.describe_instance_type_offerings(LocationType="availability-zone",
                                                     Filters=[dict(Name="instance-type",
                                                                   Values=["p5.48xlarge"])])["InstanceTypeOfferings"]),
            1)
        listed = self.client("pricing").get_products(
            ServiceCode="AmazonEC2", Filters=[dict(Type="TERM_MATCH", Field="instanceType",
                                                   Value="p5.48xlarge")])["PriceList"]
        terms = list(json.loads(listed[0])["terms"]["OnDemand"].values())[0]["priceDimensions"]
        self.assertEqual(float(list(terms.values())[0]["pricePerUnit"]["USD"]), 34.608)
        self.assertEqual(self.client("sts").get_caller_identity()["Account"], "123456789012")
        self.assertEqual(len(self.client("service-quotas").list_service_quotas(ServiceCode="ec2")["Quotas"]), 4)
        ec2.import_key_pair(KeyName="k", PublicKeyMaterial=b"ssh-ed25519 AAAA")
        ec2.delete_key_pair(KeyName="k")
        self.assertEqual(ec2.describe_key_pairs()["KeyPairs"], [])


class Alibaba(Sdk):
    name = "alibaba"

    def client(self, secret=None):
        from alibabacloud_ecs20140526.client import Client
        from alibabacloud_tea_openapi.models import Config
        return Client(
            Config(access_key_id=self.env["ALIBABA_CLOUD_ACCESS_KEY_ID"], access_key_secret=secret or
                   self.env["ALIBABA_CLOUD_ACCESS_KEY_SECRET"], endpoint=self.fake.host(), protocol="http",
                   region_id="cn-hangzhou"))

    def test(self):
        from alibabacloud_ecs20140526 import models as m
        client, ids = self.client(), []
        for n in range(3):
            request = m.RunInstancesRequest(
                region_id="cn-hangzhou", image_id=self.settings["image"], instance_type="ecs.gn6i-c4g1.xlarge",
                v_switch_id=self.settings["subnet"], security_group_id=self.settings["security_group"], amount=1,
                client_token=f"t{n}", user_data=DATA,
                tag=[m.RunInstancesRequestTag(key="rille-lease", value="a b+c/~é")
                     ], system_disk=m.RunInstancesRequestSystemDisk(category="cloud_essd", size="100"),
                spot_strategy="SpotAsPriceGo", internet_max_bandwidth_out=10)
            made = client.run_instances(request).body.instance_id_sets.instance_id_set
            self.assertEqual(client.run_instances(request).body.instance_id_sets.instance_id_set, made)
            ids += made
        request.instance_type = "ecs.gn7i-c8g1.2xlarge"
        with self.assertRaises(Exception) as got:
            client.run_instances(request)
        self.assertEqual(got.exception.code, "IdempotentParameterMismatch")
        self.fake.control("set", page_size=2)
        found, token = [], None
        while True:
            page = client.describe_instances(
                m.DescribeInstancesRequest(region_id="cn-hangzhou",
                                           tag=[m.DescribeInstancesRequestTag(key="rille-lease", value="a b+c/~é")],
                                           max_results=10, next_token=token)).body
            found += page.instances.instance
            token = page.next_token
            if not token:
                break
        self.assertEqual([i.instance_id for i in found], ids)
        self.turn(10)
        one = client.describe_instances(
            m.DescribeInstancesRequest(region_id="cn-hangzhou", instance_ids=json.dumps(ids[:1])))
        self.assertEqual(
            (one.body.instances.instance[0].status, len(one.body.instances.instance[0].public_ip_address.ip_address)),
            ("Running", 1))
        with self.assertRaises(Exception) as got:
            self.client("wrong").describe_regions(m.DescribeRegionsRequest())
        self.assertEqual(got.exception.code, "SignatureDoesNotMatch")
        price = client.describe_price(
            m.DescribePriceRequest(region_id="cn-hangzhou", instance_type="ecs.gn6i-c4g1.xlarge",
                                   price_unit="Hour")).body.price_info.price
        self.assertEqual((price.currency, price.trade_price), ("CNY", 11.63))
        client.delete_instances(m.DeleteInstancesRequest(region_id="cn-hangzhou", instance_id=ids, force=True))
        self.turn(10)
        self.assertEqual(self.alive(), 0)

    def test_the_older_one(self):
        """aliyun-python-sdk-ecs signs with HMAC-SHA1, or with the given method."""
        from aliyunsdkcore.acs_exception.exceptions import ServerException
        from aliyunsdkcore.client import AcsClient
        from aliyunsdkecs.request.v20140526 import (DeleteInstanceRequest, DescribeInstancesRequest,
                                                    RunInstancesRequest)

        def say(request, secret=None, **values):
            client = AcsClient(self.env["ALIBABA_CLOUD_ACCESS_KEY_ID"], secret or
                               self.env["ALIBABA_CLOUD_ACCESS_KEY_SECRET"], "cn-hangzhou", auto_retry=False)
            request.set_endpoint(self.fake.host())
            request.set_protocol_type("http")
            for name, value in values.items():
                getattr(request, "set_" + name)(value)
            return json.loads(client.do_action_with_exception(request))

        made = say(RunInstancesRequest.RunInstancesRequest(), ImageId=self.settings["image"],
                   InstanceType="ecs.gn6i-c4g1.xlarge", VSwitchId=self.settings["subnet"],
                   SecurityGroupId=self.settings["security_group"], ClientToken="t",
                   Tags=[dict(Key="rille-lease", Value="x y")], UserData=DATA)
        id = made["InstanceIdSets"]["InstanceIdSet"][0]
        self.turn(10)
        found = say(DescribeInstancesRequest.DescribeInstancesRequest(), Tags=[dict(Key="rille-lease", Value="x y")])
        self.assertEqual([i["InstanceId"] for i in found["Instances"]["Instance"]], [id])
        with self.assertRaises(ServerException) as got:
            say(DescribeInstancesRequest.DescribeInstancesRequest(), secret="wrong")
        # What it makes of SignatureDoesNotMatch where the string to sign in the message is its own.
        self.assertEqual(got.exception.get_error_code(), "InvalidAccessKeySecret")
        say(DeleteInstanceRequest.DeleteInstanceRequest(), InstanceId=id, Force=True)
        self.turn(10)
        self.assertEqual(self.alive(), 0)


class Tencent(Sdk):
    name = "tencent"

    def client(self, secret=None, service="cvm"):
        from tencentcloud.common.credential import Credential
        from tencentcloud.common.profile.client_profile import ClientProfile
        from tencentcloud.common.profile.http_profile import HttpProfile
        if service == "cvm":
            from tencentcloud.cvm.v20170312.cvm_client import CvmClient as kind
        else:
            from tencentcloud.sts.v20180813.sts_client import StsClient as kind
        profile = ClientProfile(httpProfile=HttpProfile(protocol="http", endpoint=self.fake.host()))
        return kind(Credential(self.env["TENCENTCLOUD_SECRET_ID"], secret or self.env["TENCENTCLOUD_SECRET_KEY"]),
                    "ap-guangzhou", profile)

    def test(self):
        from tencentcloud.common.exception.tencent_cloud_sdk_exception import TencentCloudSDKException
        from tencentcloud.cvm.v20170312 import models as m

        def request(kind, **values):
            made = kind()
            made.from_json_string(json.dumps(values))
            return made

        client, ids = self.client(), []
        for n in range(3):
            order = request(
                m.RunInstancesRequest, InstanceChargeType="SPOTPAID", Placement=dict(Zone="ap-guangzhou-6"),
                InstanceType="GN7.2XLARGE32", ImageId=self.settings["image"],
                SystemDisk=dict(DiskType="CLOUD_PREMIUM", DiskSize=100), ClientToken=f"t{n}", UserData=DATA,
                InstanceCount=1, VirtualPrivateCloud=dict(VpcId=self.settings["vpc"], SubnetId=self.settings["subnet"]),
                TagSpecification=[dict(ResourceType="instance", Tags=[dict(Key="rille-lease", Value="a b+c/~é")])
                                  ], InternetAccessible=dict(PublicIpAssigned=True, InternetMaxBandwidthOut=10),
                InstanceMarketOptions=dict(MarketType="spot", SpotOptions=dict(MaxPrice="9",
                                                                               SpotInstanceType="one-time")))
            made = client.RunInstances(order).InstanceIdSet
            self.assertEqual(client.RunInstances(order).InstanceIdSet, made)
            ids += made
        self.turn(10)
        self.fake.control("set", page_size=2)
        found = []
        while True:
            page = client.DescribeInstances(
                request(m.DescribeInstancesRequest, Offset=len(found), Limit=100,
                        Filters=[dict(Name="tag:rille-lease", Values=["a b+c/~é"])]))
            found += page.InstanceSet
            if len(found) >= page.TotalCount:
                break
        self.assertEqual([(i.InstanceId, i.InstanceState) for i in found], [(i, "RUNNING") for i in ids])
        self.assertEqual(found[0].GPUInfo.GPUCount, 1.0)
        offers = client.DescribeZoneInstanceConfigInfos(
            request(m.DescribeZoneInstanceConfigInfosRequest,
                    Filters=[dict(Name="instance-type", Values=["GN7.2XLARGE32"])])).InstanceTypeQuotaSet
        hourly = [o.Price.UnitPriceDiscount for o in offers if o.InstanceChargeType != "PREPAID"]
        self.assertEqual(sorted(set(hourly)), [1.74, 8.68])
        with self.assertRaises(TencentCloudSDKException) as got:
            self.client("wrong").DescribeInstances(m.DescribeInstancesRequest())
        self.assertEqual(got.exception.code, "AuthFailure.SignatureFailure")
        with self.assertRaises(TencentCloudSDKException) as got:
            order.ClientToken, order.ImageId = "u", "img-none"
            client.RunInstances(order)
        self.assertEqual(got.exception.code, "InvalidImageId.NotFound")
        from tencentcloud.sts.v20180813.models import GetCallerIdentityRequest
        self.assertEqual(self.client(service="sts").GetCallerIdentity(GetCallerIdentityRequest()).Type, "CAMUser")
        client.TerminateInstances(request(m.TerminateInstancesRequest, InstanceIds=ids))
        self.turn(10)
        self.assertEqual(self.alive(), 0)


class Huawei(Sdk):
    name = "huawei"

    def client(self, secret=None):
        from huaweicloudsdkcore.auth.credentials import BasicCredentials
        from huaweicloudsdkecs.v2 import EcsClient
        credentials = BasicCredentials(self.env["HUAWEICLOUD_SDK_AK"], secret or self.env["HUAWEICLOUD_SDK_SK"],
                                       self.env["HUAWEICLOUD_SDK_PROJECT_ID"])
        return EcsClient.new_builder().with_credentials(credentials).with_endpoints([self.fake.url()]).build()

    def test(self):
        from huaweicloudsdkcore.exceptions.exceptions import ClientRequestException
        from huaweicloudsdkecs.v2 import model as m
        client, ids = self.client(), []
        for n in range(3):
            request = m.CreatePostPaidServersRequest(
                x_client_token=f"t{n}", body=m.CreatePostPaidServersRequestBody(server=m.PostPaidServer(
                    name="rille", image_ref=self.settings["image"], flavor_ref="pi2.2xlarge.4",
                    vpcid=self.settings["vpc"], nics=[m.PostPaidServerNic(
                        subnet_id=self.settings["subnet"])], root_volume=m.PostPaidServerRootVolume(
                            volumetype="SSD", size=40), user_data=DATA, availability_zone="cn-north-4a",
                    server_tags=[m.PostPaidServerTag(key="rille-lease", value="a b+c/~")],
                    extendparam=m.PostPaidServerExtendParam(charging_mode=0, market_type="spot", spot_price="9"))))
            made = client.create_post_paid_servers(request)
            self.assertEqual(client.create_post_paid_servers(request).server_ids, made.server_ids)
            ids += made.server_ids
        self.turn(10)
        self.assertEqual(client.show_job(m.ShowJobRequest(job_id=made.job_id)).status, "SUCCESS")
        server = client.show_server(m.ShowServerRequest(server_id=ids[0])).server
        self.assertEqual((server.status, server.flavor.id, server.tags),
                         ("ACTIVE", "pi2.2xlarge.4", ["rille-lease=a b+c/~"]))
        self.fake.control("set", page_size=2)
        found = []
        for n in (1, 2):
            page = client.list_servers_details(m.ListServersDetailsRequest(limit=2, offset=n))
            found += [s.id for s in page.servers]
        self.assertEqual((found, page.count), (ids, 3))
        by_tag = client.list_servers_by_tag(
            m.ListServersByTagRequest(body=m.ListServersByTagRequestBody(
                action="filter", limit="100", offset="0", tags=[m.ServerTags(key="rille-lease", values=["a b+c/~"])])))
        self.assertEqual([r.resource_id for r in by_tag.resources], ids[:2])
        flavors = client.list_flavors(m.ListFlavorsRequest()).flavors
        self.assertEqual(next(f for f in flavors if f.id == "p3.16xlarge.8").vcpus, "64")
        with self.assertRaises(ClientRequestException) as got:
            self.client("wrong").show_job(m.ShowJobRequest(job_id="x"))
        self.assertEqual(got.exception.error_code, "APIGW.0301")
        client.delete_servers(
            m.DeleteServersRequest(body=m.DeleteServersRequestBody(servers=[m.ServerId(
                id=i) for i in ids], delete_publicip=True, delete_volume=True)))
        self.turn(10)
        self.assertEqual(self.alive(), 0)

    def test_the_rest(self):
        from huaweicloudsdkbss.v2 import BssClient, model as b
        from huaweicloudsdkcore.auth.credentials import GlobalCredentials
        from huaweicloudsdkiam.v3 import IamClient, model as i
        credentials = GlobalCredentials(self.env["HUAWEICLOUD_SDK_AK"], self.env["HUAWEICLOUD_SDK_SK"], "d" * 32)
        iam = IamClient.new_builder().with_credentials(credentials).with_endpoints([self.fake.url()]).build()
        found = iam.keystone_list_projects(i.KeystoneListProjectsRequest(name="cn-north-4")).projects
        self.assertEqual([p.id for p in found], [self.settings["project"]])
        bss = BssClient.new_builder().with_credentials(credentials).with_endpoints([self.fake.url()]).build()
        rated = bss.list_on_demand_resource_ratings(
            b.ListOnDemandResourceRatingsRequest(body=b.RateOnDemandReq(
                project_id=self.settings["project"], inquiry_precision=1, product_infos=[
                    b.DemandProductInfo(id="1", cloud_service_type="hws.service.type.ec2",
                                        resource_type="hws.resource.type.vm", resource_spec="pi2.2xlarge.4.linux",
                                        region="cn-north-4", available_zone="cn-north-4a", usage_factor="Duration",
                                        usage_value=1, usage_measure_id=4, subscription_num=1)
                ])))
        self.assertEqual((float(rated.amount), rated.currency), (10.76, "CNY"))


if __name__ == "__main__":
    every = [
        "Aws", "Alibaba", "Tencent", "Huawei", "Kubernetes", "Azure", "Gcp", "Runpod", "Vast", "Signers",
        "StoreSigners", "AwsKeys", "GcpKeys", "AzureKeys", "HuaweiKeys", "TencentKeys"
    ]
    SignerCase.program = sys.argv[2]
    names = [e for e in every if e.lower() in {n.lower() for n in sys.argv[3:] or every}]
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(globals()[n]) for n in names)
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
