"""The wire of EC2 for the fake: what each action takes, nested names, XML, tags; and what the fake has to sell from."""
from xml.sax.saxutils import escape

from base import Refusal
from rules import Rules

ZONES = {
    "us-east-1": ["us-east-1a", "us-east-1b"], "us-west-2": ["us-west-2a", "us-west-2b"],
    "eu-central-1": ["eu-central-1a"], "cn-north-1": ["cn-north-1a"]  # really an account of its own
}
IMAGES = {"ami-0a1b2c3d4e5f60718": "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) 20260901"}
IMAGES["ami-0b1b2c3d4e5f60718"] = "al2023-ami-2023.9.20261101.0-kernel-6.1-x86_64"
IMAGES["ami-0d1b2c3d4e5f60718"] = "Deep Learning Base Proprietary Nvidia Driver GPU AMI (Ubuntu 22.04) 20260901"
ROOTS = {"ami-0b1b2c3d4e5f60718": "/dev/xvda"}  # others: /dev/sda1
SUBNETS = {
    "subnet-0aaaaaaaaaaaaaaa1": "us-east-1a", "subnet-0aaaaaaaaaaaaaaa2": "us-east-1b",
    "subnet-0aaaaaaaaaaaaaaa3": "us-west-2a", "subnet-0aaaaaaaaaaaaaaa4": "eu-central-1a"
}
GROUPS, VPC, OTHER_VPC = {"sg-0123456789abcdef0"}, "vpc-0aaaaaaaaaaaaaaa1", "vpc-0bbbbbbbbbbbbbbb2"
RESERVATION = "cr-0123456789abcdef0"  # for p4d.24xlarge
CODES = {
    "starting": (0, "pending"), "running": (16, "running"), "ending": (32, "shutting-down"), "gone": (48, "terminated"),
    "stopping": (64, "stopping"), "stopped": (80, "stopped")
}
REASONS = {
    "user": "Client.UserInitiatedShutdown", "reclaim": "Server.SpotInstanceTermination",
    "expired": "Client.InstanceInitiatedShutdown"
}
TAGS = "TagSpecification.N.ResourceType TagSpecification.N.Tag.N.Key TagSpecification.N.Tag.N.Value"
PAGES = "MaxResults NextToken Filter.N.Name Filter.N.Value.N DryRun"
ALLOWED = {  # what each action takes; a leading ! is required
    "RunInstances": "!ImageId !InstanceType !MinCount !MaxCount KeyName SecurityGroupId.N SubnetId UserData "
    "ClientToken "
    "Placement.AvailabilityZone Placement.GroupName "
    "NetworkInterface.N.AssociatePublicIpAddress NetworkInterface.N.DeviceIndex "
    "NetworkInterface.N.InterfaceType NetworkInterface.N.NetworkCardIndex "
    "NetworkInterface.N.DeleteOnTermination NetworkInterface.N.SubnetId NetworkInterface.N.SecurityGroupId.N "
    "BlockDeviceMapping.N.DeviceName BlockDeviceMapping.N.Ebs.VolumeSize BlockDeviceMapping.N.Ebs.VolumeType "
    "BlockDeviceMapping.N.Ebs.DeleteOnTermination BlockDeviceMapping.N.Ebs.Iops BlockDeviceMapping.N.Ebs.Throughput "
    "BlockDeviceMapping.N.Ebs.Encrypted BlockDeviceMapping.N.Ebs.KmsKeyId IamInstanceProfile.Name "
    "MetadataOptions.HttpTokens MetadataOptions.HttpPutResponseHopLimit InstanceInitiatedShutdownBehavior EbsOptimized "
    "DryRun CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId "
    "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationResourceGroupArn "
    "CreditSpecification.CpuCredits InstanceMarketOptions.MarketType InstanceMarketOptions.SpotOptions.MaxPrice "
    "InstanceMarketOptions.SpotOptions.SpotInstanceType InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior "
    + TAGS,
    "DescribeInstances": "InstanceId.N " + PAGES,
    "TerminateInstances": "!InstanceId.N Force SkipOsShutdown DryRun",
    "StopInstances": "!InstanceId.N Force DryRun", "StartInstances": "!InstanceId.N DryRun",
    "ModifyInstanceAttribute": "!InstanceId InstanceType.Value DryRun",
    "DescribeInstanceTypes": "InstanceType.N " + PAGES,
    "DescribeInstanceTypeOfferings": "LocationType " + PAGES,
    "DescribeSpotPriceHistory": "InstanceType.N ProductDescription.N StartTime EndTime AvailabilityZone " + PAGES,
    "DescribeSpotInstanceRequests": "SpotInstanceRequestId.N " + PAGES,
    "CancelSpotInstanceRequests": "!SpotInstanceRequestId.N DryRun",
    "GetSpotPlacementScores": "InstanceType.N !TargetCapacity SingleAvailabilityZone RegionName.N " + PAGES,
    "CreateTags": "!ResourceId.N Tag.N.Key Tag.N.Value DryRun", "DescribeTags": PAGES,
    "ImportKeyPair": "!KeyName !PublicKeyMaterial DryRun " + TAGS, "DeleteKeyPair": "KeyName KeyPairId DryRun",
    "DescribeKeyPairs": "KeyName.N KeyPairId.N DryRun Filter.N.Name Filter.N.Value.N",
    "DescribeVolumes": "VolumeId.N " + PAGES, "DeleteVolume": "!VolumeId DryRun",
    "CreateVolume": "!AvailabilityZone Size VolumeType Iops Throughput Encrypted KmsKeyId SnapshotId ClientToken "
    "DryRun " + TAGS,
    "AttachVolume": "!VolumeId !InstanceId !Device DryRun",
    "DetachVolume": "!VolumeId InstanceId Device Force DryRun",
    "DescribeImages": "ImageId.N Owner.N IncludeDeprecated " + PAGES,
    "DescribeRegions": "RegionName.N AllRegions DryRun Filter.N.Name Filter.N.Value.N",
    "DescribeAvailabilityZones": "ZoneName.N AllAvailabilityZones DryRun Filter.N.Name Filter.N.Value.N",
    "DescribeSubnets": "SubnetId.N " + PAGES, "DescribeSecurityGroups": "GroupId.N GroupName.N " + PAGES,
    "DeleteSecurityGroup": "!GroupId DryRun",
    "CreateSecurityGroup": "!GroupName !GroupDescription VpcId DryRun " + TAGS,
    "AuthorizeSecurityGroupIngress": "!GroupId IpPermissions.N.IpProtocol IpPermissions.N.FromPort "
    "IpPermissions.N.ToPort IpPermissions.N.IpRanges.N.CidrIp IpPermissions.N.Groups.N.GroupId DryRun " + TAGS,
    "AuthorizeSecurityGroupEgress": "!GroupId IpPermissions.N.IpProtocol IpPermissions.N.FromPort "
    "IpPermissions.N.ToPort IpPermissions.N.IpRanges.N.CidrIp IpPermissions.N.Groups.N.GroupId DryRun " + TAGS,
    "CreatePlacementGroup": "!GroupName !Strategy DryRun " + TAGS, "DeletePlacementGroup": "!GroupName DryRun",
    "DescribePlacementGroups": "GroupName.N GroupId.N DryRun Filter.N.Name Filter.N.Value.N",
}
RULES = {action: Rules(names) for action, names in ALLOWED.items()}


def xml(value):
    if isinstance(value, dict):
        return "".join(f"<{k}>{xml(v)}</{k}>" for k, v in value.items() if v is not None)
    if isinstance(value, list):
        return "".join(f"<item>{xml(v)}</item>" for v in value)
    return escape(str(value).lower() if isinstance(value, bool) else str(value))


def tree(parameters):
    """Dotted names as nested dicts."""
    root = {}
    for key, value in parameters.items():
        at, parts = root, key.split(".")
        for part in parts[:-1]:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                raise Refusal(400, "InvalidParameter", f"The parameter {key} collides with another.")
        at[parts[-1]] = value
    return root


def seq(node):
    return [node[k] for k in sorted(node or {}, key=int)]


def tags_of(node):
    tags = [(t.get("Key"), t.get("Value", "")) for t in seq(node)]
    for key, value in tags:
        if not key or len(key) > 128 or len(value) > 256 or key.lower().startswith("aws:"):
            raise Refusal(
                400, "InvalidParameterValue", f"Tag key '{key}' or its value exceeds the maximum length, is "
                "empty or uses the reserved prefix aws:")
    if len({k for k, _ in tags}) < len(tags):
        raise Refusal(400, "InvalidParameterValue", "Duplicate tag key specified.")
    if len(tags) > 50:
        raise Refusal(400, "TagLimitExceeded", "The maximum number of Tags for a resource is 50.")
    return dict(tags)
