"""Groups of EC2 for aws.py, and what their rules are for instances that are ordered: security groups, placement groups,
interfaces with and without EFA. Rules: the API reference of RunInstances; "Maximize network bandwidth on instances with
multiple network cards", "Placement strategies"."""
from aws_wire import GROUPS, OTHER_VPC, SUBNETS, VPC, seq, tags_of
from base import Refusal

EVERYTHING_OUT = ("-1", None, None, "0.0.0.0/0", None)


def cards(type):
    """How many network cards can each have an EFA; 0: the type knows none."""
    many = {"p4d.24xlarge": 4, "p5.48xlarge": 32}
    return many.get(type.name, 1 if type.count == 8 or type.gpu == "H100" else 0)


class Ec2Network:

    def set(self, values):
        """hidden_groups: so many lists of groups show none, as before another process has made one. zone_prices: how
        many times a spot machine's usual price a zone asks."""
        self.hidden_groups = values.pop("hidden_groups", 0)
        self.zone_prices.update(values.pop("zone_prices", {}))
        super().set(values)

    def here_groups(self):
        """id -> (name, VPC, tags): the account's own, and those that were made."""
        out = {g: ("default", VPC, {}) for g in GROUPS}
        for id, thing in self.groups.items():
            if thing.facts["region"] == self.region and thing.ended is None:
                out[id] = (thing.facts["name"], thing.facts["vpc"], thing.tags)
        return out

    def DescribeSecurityGroups(self, p):
        there = self.here_groups()
        rows = [g for g in sorted(there) if g in seq(p.get("GroupId")) or not p.get("GroupId")]
        rows = self.kept(
            p, rows, lambda g: {
                "group-id": [g], "group-name": [there[g][0]], "vpc-id": [there[g][1]], "tag": there[g][2],
                "tag-key": list(there[g][2])
            })
        if self.hidden_groups > 0:
            self.hidden_groups, rows = self.hidden_groups - 1, []
        rows, more = self.paged(p, rows)
        rule = lambda r: dict(
            ipProtocol=r[0], fromPort=r[1], toPort=r[2], ipRanges=[dict(cidrIp=r[3])] if r[3] else None,
            groups=[dict(groupId=r[4], userId=self.account)] if r[4] else None)
        rules = lambda g, way: [rule(r) for r in sorted(self.rules.get((g, way), []), key=str)] or None
        return dict(
            securityGroupInfo=[
                dict(groupId=g, groupName=there[g][0], vpcId=there[g][1], ipPermissions=rules(g, "in"),
                     ipPermissionsEgress=rules(g, "out"),
                     tagSet=[dict(key=k, value=v) for k, v in there[g][2].items()] or None) for g in rows
            ], nextToken=more or None)

    def CreateSecurityGroup(self, p):
        name, vpc = p["GroupName"], p.get("VpcId", VPC)
        if vpc not in (VPC, OTHER_VPC):
            raise Refusal(400, "InvalidVpcID.NotFound", f"The vpc ID '{vpc}' does not exist")
        if name.startswith("sg-") or len(name) > 255:
            raise Refusal(400, "InvalidParameterValue", f"Value ({name}) for parameter groupName is invalid.")
        if (name, vpc) in [(n, v) for n, v, _ in self.here_groups().values()]:
            raise Refusal(400, "InvalidGroup.Duplicate", f"The security group '{name}' already exists")
        self.effect()
        tags = {g["ResourceType"]: tags_of(g.get("Tag")) for g in seq(p.get("TagSpecification"))}
        id = "sg-" + self.world.word(17)
        # It costs nothing; that it is counted makes one that is left behind a failure of the test.
        self.groups[id] = self.world.attach("group", id, tags.get("security-group", {}), None, False,
                                            region=self.region, name=name, vpc=vpc)
        self.rules[id, "out"] = {EVERYTHING_OUT}
        return dict(groupId=id, **{"return": True})

    def DeleteSecurityGroup(self, p):
        id = p["GroupId"]
        if id not in self.here_groups():
            raise Refusal(400, "InvalidGroup.NotFound", f"The security group '{id}' does not exist")
        if any(id in m.facts["groups"] for m in self.world.alive()):
            raise Refusal(400, "DependencyViolation", f"resource {id} has a dependent object")
        self.effect()
        self.groups[id].ended = self.world.now()
        for way in ("in", "out"):
            self.rules.pop((id, way), None)
        return dict(groupId=id, **{"return": True})

    def AuthorizeSecurityGroupIngress(self, p):
        return self.authorize(p, "in")

    def AuthorizeSecurityGroupEgress(self, p):
        return self.authorize(p, "out")

    def authorize(self, p, way):
        """All of a call's rules, or none."""
        if p["GroupId"] not in self.here_groups():
            raise Refusal(400, "InvalidGroup.NotFound", f"The security group '{p['GroupId']}' does not exist")
        there, new = self.rules.setdefault((p["GroupId"], way), set()), set()
        for rule in seq(p.get("IpPermissions")):
            of = (rule.get("IpProtocol"), rule.get("FromPort"), rule.get("ToPort"))
            if (of[0] == "-1") == (of[1] is not None):
                raise Refusal(400, "InvalidParameterValue", f"Invalid value for portRange of protocol {of[0]}")
            for at in seq(rule.get("IpRanges")):
                new.add((*of, at.get("CidrIp"), None))
            for other in seq(rule.get("Groups")):
                if other.get("GroupId") not in self.here_groups():
                    raise Refusal(400, "InvalidGroup.NotFound", f"The security group '{other}' does not exist")
                new.add((*of, None, other["GroupId"]))
        if not new:
            raise Refusal(400, "MissingParameter", "Either IpRanges or Groups must be given")
        if new & there:
            raise Refusal(400, "InvalidPermission.Duplicate", f"the specified rule {new & there} already exists")
        self.effect()
        there |= new
        return {"return": True}

    # Placement groups.

    def CreatePlacementGroup(self, p):
        name = p["GroupName"]
        if p["Strategy"] not in ("cluster", "spread", "partition") or len(name) > 255:
            raise Refusal(400, "InvalidParameterValue", f"Value ({name}, {p['Strategy']}) is invalid.")
        there = self.placements.get((self.region, name))
        if there and there.ended is None:
            raise Refusal(400, "InvalidPlacementGroup.Duplicate", f"The placement group '{name}' already exists.")
        self.effect()
        tags = {g["ResourceType"]: tags_of(g.get("Tag")) for g in seq(p.get("TagSpecification"))}
        thing = self.world.attach("placement", "pg-" + self.world.word(17), tags.get("placement-group", {}), None,
                                  False, region=self.region, name=name, strategy=p["Strategy"])
        self.placements[self.region, name] = thing
        return dict(placementGroup=self.placement_row(thing))

    def placement_row(self, t):
        return dict(groupName=t.facts["name"], groupId=t.id, strategy=t.facts["strategy"], state="available",
                    tagSet=[dict(key=k, value=v) for k, v in t.tags.items()] or None)

    def here_placements(self):
        return {t.facts["name"]: t for (region, _), t in self.placements.items()
                if region == self.region and t.ended is None}

    def DescribePlacementGroups(self, p):
        rows = [t for t in self.here_placements().values()
                if t.id in seq(p.get("GroupId")) or t.facts["name"] in seq(p.get("GroupName")) or
                not ("GroupId" in p or "GroupName" in p)]
        rows = self.kept(
            p, rows, lambda t: {
                "tag": t.tags, "tag-key": list(t.tags), "group-name": [t.facts["name"]], "state": ["available"],
                "strategy": [t.facts["strategy"]]
            })
        return dict(placementGroupSet=[self.placement_row(t) for t in rows])

    def placed(self, name):
        return [m for m in self.world.alive() if m.region == self.region and m.facts.get("placement") == name]

    def DeletePlacementGroup(self, p):
        there = self.here_placements().get(p["GroupName"])
        if not there:
            raise Refusal(400, "InvalidPlacementGroup.Unknown",
                          f"The Placement Group '{p['GroupName']}' is unknown.")
        if self.placed(p["GroupName"]):
            raise Refusal(400, "InvalidPlacementGroup.InUse",
                          f"The placement group '{p['GroupName']}' is in use and may not be deleted.")
        self.effect()
        there.ended = self.world.now()
        return {"return": True}

    # What an order may say of its network.

    def check_network(self, p, type, zone):
        """zone: that the order names, or its subnet has."""
        bad = lambda why: Refusal(400, "InvalidParameterCombination", why)
        nics = seq(p.get("NetworkInterface"))
        if nics and ("SubnetId" in p or "SecurityGroupId" in p):
            raise bad("Network interfaces and an instance-level subnet ID or security groups may not be specified on "
                      "the same request")
        for group in self.ordered_groups(p):
            if group not in self.here_groups():
                raise Refusal(400, "InvalidGroup.NotFound", f"The security group '{group}' does not exist")
        for nic in nics:
            subnet, named = nic.get("SubnetId"), p.get("Placement", {}).get("AvailabilityZone")
            if subnet and subnet not in SUBNETS:
                raise Refusal(400, "InvalidSubnetID.NotFound", f"The subnet ID '{subnet}' does not exist")
            if subnet and named and SUBNETS[subnet] != named:
                raise Refusal(400, "InvalidParameterValue", f"Value ({named}) for parameter availabilityZone is "
                              f"invalid. Subnet '{subnet}' is in the availability zone {SUBNETS[subnet]}")
        if len(nics) > 1 and any(n.get("AssociatePublicIpAddress") == "true" for n in nics):
            raise bad("The associatePublicIPAddress parameter cannot be specified when launching with multiple network "
                      "interfaces.")
        where = [(int(n.get("NetworkCardIndex", 0)), int(n.get("DeviceIndex", -1))) for n in nics]
        if nics and where[0] != (0, 0) or len(set(where)) < len(where) or any((c == 0) != (d == 0) for c, d in where):
            raise bad(f"Interfaces at (card, device) {where}: one at (0, 0), the others at device 1 of the next cards")
        kinds = [n.get("InterfaceType", "interface") for n in nics]
        if set(kinds) - {"interface", "efa", "efa-only"} or kinds[:1] == ["efa-only"]:
            raise bad(f"Interfaces of the types {kinds}")
        fabric = [c for (c, _), kind in zip(where, kinds) if kind != "interface"]
        most = cards(self.types[type])
        if fabric and max(fabric) >= most or any(c >= max(most, 1) for c, _ in where):
            raise bad(f"The instance type {type} has {most} network cards with EFA")
        self.check_placement(p.get("Placement", {}).get("GroupName"), type, zone)

    def check_placement(self, name, type, zone):
        if not name:
            return
        if name not in self.here_placements():
            raise Refusal(400, "InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
        if type.startswith("t"):
            raise Refusal(400, "InvalidParameterCombination",
                          f"Cluster placement groups are not supported by the '{type}' instance type.")
        if zone and any(m.zone != zone for m in self.placed(name)):
            raise self.refusal("capacity", {})

    @staticmethod
    def ordered_groups(p):
        return seq(p.get("SecurityGroupId")) + [g for n in seq(p.get("NetworkInterface"))
                                                for g in seq(n.get("SecurityGroupId"))]
