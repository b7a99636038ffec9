"""What aws.py has beside instances: catalogue, prices, tags, keys, disks, quotas, identity, the metadata service."""
import json, math

from aws_network import cards
from aws_wire import IMAGES, ROOTS, SUBNETS, ZONES, seq, tags_of, xml
from base import Refusal, Reply, unbase64
from world import RESERVED, YEAR_H, stamp, unstamp

QUOTAS = [("L-417A185B", "Running On-Demand P instances", 768),
          ("L-DB2E81BA", "Running On-Demand G and VT instances", 768),
          ("L-7212CCBC", "All P Spot Instance Requests", 768),
          ("L-3819A6DF", "All G and VT Spot Instance Requests", 768)]


class Ec2Other:

    def DescribeInstanceTypes(self, p):
        names = seq(p.get("InstanceType"))
        for name in names:
            if name not in self.types:
                raise Refusal(400, "InvalidInstanceType",
                              f"The following supplied instance types do not exist: [{name}]")
        rows = [
            t for t in self.types.values()
            if (not names or t.name in names) and any(z in ZONES[self.region]
                                                      for z in t.facts.get("zones", ZONES[self.region]))
        ]
        rows = self.kept(
            p, rows, lambda t: {
                "instance-type": [t.name], "current-generation": ["true"],
                "processor-info.supported-architecture": [t.facts.get("architecture", "x86_64")]
            })
        rows, more = self.paged(p, rows, 100)
        return dict(instanceTypeSet=[self.type_row(t) for t in rows], nextToken=more or None)

    def type_row(self, t):
        gpu = dict(name=t.gpu, manufacturer=t.facts.get("maker", "NVIDIA"), count=t.count,
                   memoryInfo=dict(sizeInMiB=t.gpu_gib * 1024))
        return dict(
            instanceType=t.name, currentGeneration=True, supportedUsageClasses=["on-demand", "spot"],
            hypervisor=t.facts.get("hypervisor", "nitro"), vCpuInfo=dict(defaultVCpus=t.vcpus),
            memoryInfo=dict(sizeInMiB=t.memory_gib * 1024),
            processorInfo=dict(supportedArchitectures=[t.facts.get("architecture", "x86_64")]), networkInfo=dict(
                networkPerformance="3200 Gigabit" if t.gpu == "H100" and t.count == 8 else "Up to 25 Gigabit",
                efaSupported=bool(cards(t)), maximumNetworkCards=max(cards(t), 1),
                efaInfo=dict(maximumEfaInterfaces=cards(t)) if cards(t) else None),
            gpuInfo=dict(gpus=[gpu], totalGpuMemoryInMiB=t.gpu_gib * 1024 * t.count) if t.gpu else None)

    def offered(self, type):
        return [z for z in ZONES[self.region] if z in type.facts.get("zones", ZONES[self.region])]

    def DescribeInstanceTypeOfferings(self, p):
        kind = p.get("LocationType", "region")
        if kind not in ("region", "availability-zone"):
            raise Refusal(400, "InvalidParameterValue", f"Value ({kind}) for parameter locationType is invalid.")
        rows = [(t.name, place) for t in self.types.values() if self.offered(t)
                for place in (self.offered(t) if kind == "availability-zone" else [self.region])]
        rows = self.kept(p, rows, lambda r: {"instance-type": [r[0]], "location": [r[1]]})
        rows, more = self.paged(p, rows)
        return dict(instanceTypeOfferingSet=[dict(instanceType=t, locationType=kind, location=z) for t, z in rows],
                    nextToken=more or None)

    def DescribeSpotPriceHistory(self, p):
        now, products = self.world.now(), seq(p.get("ProductDescription")) or ["Linux/UNIX"]
        times = []
        for name in ("StartTime", "EndTime"):
            at = p.get(name, stamp(now))
            parsed = unstamp(at) or unstamp(at, "%Y-%m-%dT%H:%M:%S.%fZ")
            if parsed is None:
                raise Refusal(400, "InvalidParameterValue", f"Value ({at}) for parameter {name} is invalid.")
            times.append(parsed)
        hours = [times[1]] + [times[1] - 3600 * n for n in range(1, int(min(2160, (times[1] - times[0]) // 3600)) + 1)]
        wave = lambda n: 1 if n == 0 else 1 + 0.1 * math.sin(n)
        then = lambda t, z, at, n: int(self.spot_then(t.name, self.region, at, wave(n)) * self.zone_prices.get(z, 1))
        rows = [(t, z, at, then(t, z, at, n)) for t in self.types.values()
                if t.spot is not None and (t.name in seq(p.get("InstanceType")) or not p.get("InstanceType"))
                for n, at in enumerate(self.spot_instants(t.name, hours, *times))
                for z in self.offered(t) if p.get("AvailabilityZone", z) == z and "Linux/UNIX" in products]
        rows.sort(key=lambda r: -r[2])
        rows = self.kept(
            p, rows, lambda r:
            {"instance-type": [r[0].name], "availability-zone": [r[1]], "product-description": ["Linux/UNIX"]})
        rows, more = self.paged(p, rows, 1000, 1)
        return dict(
            spotPriceHistorySet=[
                dict(instanceType=t.name, productDescription="Linux/UNIX", spotPrice=f"{micros / 1e6:.6f}",
                     timestamp=stamp(at, "%Y-%m-%dT%H:%M:%S.000Z"), availabilityZone=z) for t, z, at, micros in rows
            ], nextToken=more or None)

    def DescribeSpotInstanceRequests(self, p):
        ids = seq(p.get("SpotInstanceRequestId"))
        for id in ids:
            if id not in self.spot_requests:
                raise Refusal(400, "InvalidSpotInstanceRequestID.NotFound", f"The spot instance request ID '{id}' does "
                              "not exist")
        rows = [(i, r) for i, r in self.spot_requests.items()
                if (not ids or i in ids) and r["machine"].region == self.region]
        rows = self.kept(
            p, rows, lambda r: {
                "tag": r[1]["tags"], "tag-key": list(r[1]["tags"]), "state": [self.spot_state(r[1])[0]],
                "instance-id": [r[1]["machine"].id]
            })
        rows, more = self.paged(p, rows)
        return dict(
            spotInstanceRequestSet=[
                dict(spotInstanceRequestId=i, spotPrice=None if r["cap"] is None else f"{r['cap'] / 1e6:.6f}",
                     type="one-time", state=self.spot_state(r)[0], status=dict(code=self.spot_state(r)[1]),
                     instanceId=r["machine"].id, tagSet=[dict(key=k, value=v) for k, v in r["tags"].items()])
                for i, r in rows
            ], nextToken=more or None)

    def spot_state(self, request):
        m = request["machine"]
        if request["state"] == "cancelled":
            return "cancelled", "request-canceled-and-instance-running"
        if m.phase in ("ending", "gone"):
            why = "no-capacity" if m.reason == "reclaim" else "by-user"
            return "closed", "instance-terminated-" + why
        return "active", "marked-for-termination" if m.noticed() else "fulfilled"

    def CancelSpotInstanceRequests(self, p):
        for id in seq(p["SpotInstanceRequestId"]):
            if id not in self.spot_requests:
                raise Refusal(400, "InvalidSpotInstanceRequestID.NotFound", f"The spot instance request ID '{id}' does "
                              "not exist")
            self.effect()
            self.spot_requests[id]["state"] = "cancelled"
        return dict(spotInstanceRequestSet=[
            dict(spotInstanceRequestId=i, state="cancelled") for i in seq(p["SpotInstanceRequestId"])
        ])

    def GetSpotPlacementScores(self, p):
        rows = [dict(region=r, score=9 if r == "us-east-1" else 3) for r in seq(p.get("RegionName")) or sorted(ZONES)]
        return dict(spotPlacementScoreSet=rows)

    def thing(self, id, kind, code):
        thing = self.world.things.get(id)
        if not thing or thing.kind != kind or thing.ended is not None or thing.facts.get("region") != self.region:
            raise Refusal(400, code, f"The {kind} '{id}' does not exist.")
        return thing

    def CreateTags(self, p):
        tags, of = tags_of(p.get("Tag")), []
        for id in seq(p["ResourceId"]):
            of.append(
                self.here(id) if id.startswith("i-") else self.thing(id, "disk" if id.
                                                                     startswith("vol-") else "interface", "InvalidID"))
        self.effect()
        for thing in of:
            thing.tags.update(tags)
        return {"return": True}

    def DescribeTags(self, p):
        rows = [(m.id, "instance", k, v) for m in self.world.machines.values()
                if m.region == self.region and m.visible() and m.phase != "gone" for k, v in m.tags.items()]
        rows += [(t.id, "volume", k, v) for t in self.world.things.values()
                 if t.kind == "disk" and t.ended is None and t.facts["region"] == self.region
                 for k, v in t.tags.items()]
        rows = self.kept(
            p, rows, lambda r:
            {"resource-id": [r[0]], "resource-type": [r[1]], "key": [r[2]], "value": [r[3]], "tag": {r[2]: r[3]}})
        rows, more = self.paged(p, rows)
        return dict(tagSet=[dict(resourceId=i, resourceType=t, key=k, value=v) for i, t, k, v in rows],
                    nextToken=more or None)

    def ImportKeyPair(self, p):
        name, line = p["KeyName"], unbase64(p["PublicKeyMaterial"])
        if not line or not line.startswith((b"ssh-rsa ", b"ssh-ed25519 ")):
            raise Refusal(400, "InvalidKey.Format", "Key is not in valid OpenSSH public key format")
        if ("key", self.region, name) in self.named:
            raise Refusal(400, "InvalidKeyPair.Duplicate", f"The keypair already exists: {name}")
        self.effect()
        tags = next((tags_of(g.get("Tag")) for g in seq(p.get("TagSpecification"))), {})
        thing = self.world.attach("key", "key-" + self.world.word(17), tags, None, False, False, region=self.region,
                                  name=name)
        self.named[("key", self.region, name)] = thing
        return dict(keyName=name, keyPairId=thing.id, keyFingerprint=":".join(["00"] * 16))

    def DeleteKeyPair(self, p):
        self.effect()
        for place, thing in list(self.named.items()):
            if place[1] == self.region and p.get("KeyName", place[2]) == place[2] and p.get("KeyPairId",
                                                                                            thing.id) == thing.id:
                thing.ended = self.world.now()
                del self.named[place]
        return {"return": True}

    def DescribeKeyPairs(self, p):
        rows = [t for (_, region, _), t in self.named.items() if region == self.region]
        for name in seq(p.get("KeyName")):
            if name not in [t.facts["name"] for t in rows]:
                raise Refusal(400, "InvalidKeyPair.NotFound", f"The key pair '{name}' does not exist")
        rows = self.kept(p, [t for t in rows if t.facts["name"] in seq(p.get("KeyName")) or not p.get("KeyName")],
                         lambda t: {"key-name": [t.facts["name"]], "tag": t.tags, "tag-key": list(t.tags)})
        return dict(keySet=[dict(keyName=t.facts["name"], keyPairId=t.id) for t in rows])

    def DescribeVolumes(self, p):
        rows = [self.thing(i, "disk", "InvalidVolume.NotFound") for i in seq(p.get("VolumeId"))] or [
            t for t in self.world.things.values()
            if t.kind == "disk" and t.ended is None and t.facts["region"] == self.region
        ]
        rows = self.kept(
            p, rows, lambda t: {
                "tag": t.tags, "tag-key": list(t.tags), "status": [self.volume(t)["status"]],
                "attachment.instance-id": [t.machine] if t.machine else []
            })
        rows, more = self.paged(p, rows)
        return dict(volumeSet=[self.volume(t) for t in rows], nextToken=more or None)

    def volume(self, t):
        new = t.facts.get("ready", 0) > self.world.now()
        return dict(volumeId=t.id, size=t.facts["size"], volumeType=t.facts["type"],
                    status="creating" if new else "in-use" if t.machine else "available",
                    availabilityZone=t.facts.get("zone"),
                    attachmentSet=[dict(instanceId=t.machine, deleteOnTermination=t.dies_with)] if t.machine else [],
                    tagSet=[dict(key=k, value=v) for k, v in t.tags.items()])

    def CreateVolume(self, p):
        """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateVolume.html"""
        zone, kind, size = p["AvailabilityZone"], p.get("VolumeType", "gp2"), p.get("Size", "")
        least = {"gp2": 1, "gp3": 1, "st1": 125, "sc1": 125}
        if zone not in ZONES[self.region]:
            raise Refusal(400, "InvalidZone.NotFound", f"The zone '{zone}' does not exist.")
        if kind not in least:
            raise Refusal(400, "InvalidParameterValue", f"Value ({kind}) for parameter volumeType is invalid.")
        if not size.isdigit() or not least[kind] <= int(size) <= 16384:
            raise Refusal(400, "InvalidParameterValue", f"Volume of {size}GiB is out of range for {kind}.")
        tags = {}
        for group in seq(p.get("TagSpecification")):
            if group.get("ResourceType") != "volume":
                raise Refusal(400, "InvalidParameterValue", "resourceType must be volume.")
            tags = tags_of(group.get("Tag"))
        token = p.get("ClientToken", "")
        same = json.dumps({k: v for k, v in p.items() if k not in ("ClientToken", "DryRun")}, sort_keys=True)
        known = self.world.recall((self.region, "volume"), token) if token else None
        if known and known[0] != same:
            raise Refusal(400, "IdempotentParameterMismatch", "The client token was used with other parameters.")
        if known:
            return self.volume(known[1])
        self.effect()
        made = self.world.attach("disk", "vol-" + self.world.word(17), tags, None, False, region=self.region, size=size,
                                 type=kind, zone=zone, ready=self.world.now() + 20 * self.world.start)
        if token:
            self.world.remember((self.region, "volume"), token, same, made)
        return self.volume(made)

    def AttachVolume(self, p):
        disk, m = self.thing(p["VolumeId"], "disk", "InvalidVolume.NotFound"), self.here(p["InstanceId"])
        if m.phase != "running":
            raise Refusal(400, "IncorrectState", f"Instance '{m.id}' is not 'running'.")
        if self.volume(disk)["status"] == "creating":
            raise Refusal(400, "IncorrectState", f"Volume '{disk.id}' is not 'available'.")
        if disk.machine:
            raise Refusal(400, "VolumeInUse", f"{disk.id} is already attached to an instance")
        if disk.facts.get("zone") != m.zone:
            raise Refusal(400, "InvalidVolume.ZoneMismatch", f"The volume '{disk.id}' is not in the same availability "
                          f"zone as instance '{m.id}'")
        here = [t for t in self.world.things.values() if t.kind == "disk" and t.machine == m.id and t.ended is None]
        if p["Device"] in [t.facts.get("device") for t in here]:
            raise Refusal(400, "InvalidParameterValue", f"Invalid value '{p['Device']}' for unixDevice. Attachment "
                          f"point {p['Device']} is already in use")
        self.effect()
        disk.machine, disk.facts["device"] = m.id, p["Device"]
        return dict(volumeId=disk.id, instanceId=m.id, device=p["Device"], status="attaching")

    def DetachVolume(self, p):
        disk = self.thing(p["VolumeId"], "disk", "InvalidVolume.NotFound")
        if not disk.machine or disk.dies_with:
            raise Refusal(400, "IncorrectState", f"Volume '{disk.id}' is not attached, or is a root.")
        self.effect()
        disk.machine = None
        return dict(volumeId=disk.id, status="detaching")

    def DeleteVolume(self, p):
        disk = self.thing(p["VolumeId"], "disk", "InvalidVolume.NotFound")
        if disk.machine:
            raise Refusal(400, "VolumeInUse", f"Volume {disk.id} is currently attached to {disk.machine}")
        self.effect()
        disk.ended = self.world.now()
        return {"return": True}

    def DescribeImages(self, p):
        for id in seq(p.get("ImageId")):
            if id not in IMAGES:
                raise Refusal(400, "InvalidAMIID.NotFound", f"The image id '[{id}]' does not exist")
        rows = self.kept(
            p, [i for i in IMAGES if i in seq(p.get("ImageId")) or not p.get("ImageId")], lambda i:
            {"name": [IMAGES[i]], "architecture": ["x86_64"], "state": ["available"], "virtualization-type": ["hvm"]})
        return dict(imagesSet=[
            dict(imageId=i, name=IMAGES[i], imageState="available", architecture="x86_64",
                 creationDate="2026-09-01T00:00:00.000Z", rootDeviceName=ROOTS.get(i, "/dev/sda1")) for i in rows
        ])

    def DescribeRegions(self, p):
        return dict(regionInfo=[
            dict(regionName=r, regionEndpoint=f"ec2.{r}.amazonaws.com", optInStatus="opt-in-not-required")
            for r in sorted(ZONES)
        ])

    def DescribeAvailabilityZones(self, p):
        return dict(availabilityZoneInfo=[
            dict(zoneName=z, zoneState="available", regionName=self.region) for z in ZONES[self.region]
        ])

    def DescribeSubnets(self, p):
        for id in seq(p.get("SubnetId")):
            if SUBNETS.get(id) not in ZONES[self.region]:
                raise Refusal(400, "InvalidSubnetID.NotFound", f"The subnet ID '{id}' does not exist")
        rows = [(i, z) for i, z in SUBNETS.items()
                if z in ZONES[self.region] and (i in seq(p.get("SubnetId")) or not p.get("SubnetId"))]
        rows = self.kept(p, rows, lambda r: {"availability-zone": [r[1]], "default-for-az": ["true"]})
        return dict(subnetSet=[
            dict(subnetId=i, availabilityZone=z, vpcId="vpc-0aaaaaaaaaaaaaaa1", defaultForAz=True, state="available")
            for i, z in rows
        ])

    def metadata(self, request, machine, path):
        """IMDSv2: a token first. The address is URL/_metadata/INSTANCE in place of http://169.254.169.254."""
        if path == "/latest/api/token":
            if request.method != "PUT" or not request.header("X-aws-ec2-metadata-token-ttl-seconds").isdigit():
                return Reply(400, "", "text/plain")
            machine.facts["imds"] = self.world.word(40)
            return Reply(200, machine.facts["imds"], "text/plain")
        if request.header("X-aws-ec2-metadata-token", "-") != machine.facts.get("imds"):
            return Reply(401, "", "text/plain")
        answers = {
            "/latest/meta-data/instance-id": machine.id,
            "/latest/meta-data/instance-life-cycle": "spot" if machine.spot else "on-demand",
            "/latest/meta-data/placement/availability-zone": machine.zone
        }
        if machine.noticed():
            answers["/latest/meta-data/spot/instance-action"] = json.dumps(
                dict(action="terminate", time=stamp(machine.reclaim_at)))
            answers["/latest/meta-data/events/recommendations/rebalance"] = json.dumps(
                dict(noticeTime=stamp(machine.notice_at)))
        return Reply(200, answers[path], "text/plain") if path in answers else Reply(404, "", "text/plain")


def json_service(fake, request, p):
    """Price List and Service Quotas."""
    target = request.header("X-Amz-Target")
    if request.header("Content-Type") != "application/x-amz-json-1.1":
        raise Refusal(400, "SerializationException", "Content-Type must be application/x-amz-json-1.1")
    if target == "AWSPriceListService.GetProducts":
        return Reply(200, products(fake, p), "application/x-amz-json-1.1")
    if target == "ServiceQuotasV20190624.ListServiceQuotas":
        if p.get("ServiceCode") != "ec2":
            raise Refusal(400, "NoSuchResourceException", "The requested service does not exist.")
        rows = [
            dict(ServiceCode="ec2", QuotaCode=c, QuotaName=n, Value=float(v), Unit="None", Adjustable=True)
            for c, n, v in QUOTAS
        ]
        rows, more = fake.page(rows, p.get("NextToken"), p.get("MaxResults", 0), 100,
                               Refusal(400, "InvalidPaginationTokenException", "Invalid NextToken"))
        return Reply(200, dict(Quotas=rows, **({"NextToken": more} if more else {})), "application/x-amz-json-1.1")
    raise Refusal(400, "UnknownOperationException", target)


def products(fake, p):
    if p.get("ServiceCode") != "AmazonEC2":
        raise Refusal(400, "NotFoundException", f"{p.get('ServiceCode')} is not a valid service code")
    rows = []
    for region in ZONES:
        for t in fake.types.values():
            fields = dict(instanceType=t.name, regionCode=region, operatingSystem="Linux", tenancy="Shared",
                          preInstalledSw="NA", capacitystatus="Used", licenseModel="No License required",
                          gpu=str(t.count))
            for f in p.get("Filters", []):
                if f.get("Type") not in ("TERM_MATCH", "EQUALS"):
                    raise Refusal(400, "InvalidParameterException", f"Invalid filter type {f.get('Type')}")
            if all(fields.get(f["Field"], "").lower() == f["Value"].lower() for f in p.get("Filters", [])):
                price = f"{fake.price(t.name, False, region) / 1e6:.10f}"
                term = {
                    "priceDimensions": {
                        "SKU.JRTCKXETXF.6YS6EN2CT7": {
                            "unit": "Hrs", "pricePerUnit": {"USD": price},
                            "description": f"${price} per On Demand Linux {t.name}"
                        }
                    }, "termAttributes": {}
                }
                terms = {"OnDemand": {"SKU.JRTCKXETXF": term}}
                if reserved := reserved_terms(t, fake.price(t.name, False, region) / 1e6):
                    terms["Reserved"] = reserved
                rows.append(
                    json.dumps(
                        dict(product=dict(productFamily="Compute Instance", attributes=fields, sku="SKU"),
                             serviceCode="AmazonEC2", terms=terms)))
    rows, more = fake.page(rows, p.get("NextToken"), p.get("MaxResults", 0), 100,
                           Refusal(400, "InvalidNextTokenException", "Invalid NextToken"))
    return dict(FormatVersion="aws_v1", PriceList=rows, **({"NextToken": more} if more else {}))


def reserved_terms(type, price):
    """Without an advance; with one, which is cheaper; and the kind that can be exchanged. A type with eight GPUs is
    sold for three years with an advance only, one without GPUs not at all."""
    out = {}
    for years, share in RESERVED.items() if type.gpu else ():
        total = price * share * YEAR_H * years
        for option, kind, hourly, advance in (("No Upfront", "standard", price * share, 0),
                                              ("All Upfront", "standard", 0, total * 0.9),
                                              ("Partial Upfront", "standard", price * share / 2, total / 2),
                                              ("No Upfront", "convertible", price * share * 0.8, 0)):
            if type.count == 8 and years == 3 and option != "Partial Upfront":
                continue
            dimensions = {"H": dict(unit="Hrs", description="Linux/UNIX (Amazon VPC), reserved instance applied",
                                    pricePerUnit={"USD": f"{hourly:.10f}"})}
            if advance:
                dimensions["Q"] = dict(unit="Quantity", description="Upfront Fee",
                                       pricePerUnit={"USD": f"{advance:.4f}"})
            out[f"SKU.{years}{option}{kind}"] = {
                "priceDimensions": dimensions, "termAttributes": dict(LeaseContractLength=f"{years}yr",
                                                                      OfferingClass=kind, PurchaseOption=option)
            }
    return out


def who(fake, operation, p, request):
    """STS and IAM. A key that lasts may ask for its own user's keys; a temporary one has to name a user."""
    version = {"sts": "2011-06-15", "iam": "2010-05-08"}[fake.service]
    known = {
        "sts": ("GetCallerIdentity", "AssumeRole", "AssumeRoleWithWebIdentity"), "iam": ("ListAccessKeys", )
    }[fake.service]
    if operation not in known or p.get("Version") != version:
        raise Refusal(400, "InvalidAction", f"Could not find operation {operation} for version {p.get('Version')}")
    of_roles = {"RoleArn", "RoleSessionName", "ExternalId", "DurationSeconds", "WebIdentityToken"}
    if set(p) - {"Action", "Version", "MaxItems", "Marker"} - (of_roles if "AssumeRole" in operation else set()):
        raise Refusal(400, "ValidationError", f"Unknown parameters: {sorted(p)}")
    if "AssumeRole" in operation:
        result = fake.assume(operation, p, request)
    elif operation == "GetCallerIdentity":
        result = dict(Arn=f"arn:aws:iam::{fake.account}:user/rille", UserId="AIDACKCEVSQ6C2EXAMPLE",
                      Account=fake.account)
    elif request.header("X-Amz-Security-Token"):
        raise Refusal(400, "ValidationError", "Must specify userName when calling with non-User credentials")
    else:
        made = stamp(fake.key_made())
        rows = "".join(
            f"<member>{xml(dict(UserName='rille', AccessKeyId=k, Status='Active', CreateDate=at))}</member>"
            for k, at in (("AKIAIOSFODNN7EXAMPLE", "2020-01-01T00:00:00Z"), (fake.key, made)))
        body = f"<IsTruncated>false</IsTruncated><AccessKeyMetadata>{rows}</AccessKeyMetadata>"
        return Reply(200, wrapped(operation, fake.service, version, body, fake.request_id), "text/xml")
    return Reply(200, wrapped(operation, fake.service, version, xml(result), fake.request_id), "text/xml")


def wrapped(operation, service, version, body, request_id):
    return (f'<{operation}Response xmlns="https://{service}.amazonaws.com/doc/{version}/"><{operation}Result>{body}'
            f"</{operation}Result><ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>"
            f"</{operation}Response>")
