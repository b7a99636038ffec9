"""Instances of EC2 for aws.py: each method takes the nested parameters and gives the members of its answer."""
import fnmatch, json, re

from aws_wire import CODES, IMAGES, REASONS, RESERVATION, ROOTS, SUBNETS, ZONES, seq, tags_of
from base import Refusal, unbase64
from world import Machine, stamp


class Ec2:

    def effect(self):
        if self.dry:
            raise Refusal(412, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")

    def RunInstances(self, p):
        token = p.get("ClientToken", "")
        if len(token) > 64 or not token.isascii():
            raise Refusal(400, "InvalidParameterValue",
                          f"Value ({token}) for parameter clientToken is invalid: at most "
                          "64 ASCII characters.")
        subnet = p.get("SubnetId") or seq(p.get("NetworkInterface"))[:1] and seq(
            p["NetworkInterface"])[0].get("SubnetId") or None
        if subnet and subnet not in SUBNETS:
            raise Refusal(400, "InvalidSubnetID.NotFound", f"The subnet ID '{subnet}' does not exist")
        asked = p.get("Placement", {}).get("AvailabilityZone") or SUBNETS.get(subnet)
        scope = (self.region, asked or "")
        same = json.dumps({k: v for k, v in p.items() if k not in ("ClientToken", "DryRun")}, sort_keys=True)
        known = self.world.recall(scope, token) if token else None
        if known:
            return self.replay(known, same)
        made = self.launch(p, self.checked(p, asked), asked)
        if token:
            self.world.remember(scope, token, same, made)
        return made["answer"]

    def replay(self, known, same):
        if known[0] != same:
            raise Refusal(
                400, "IdempotentParameterMismatch", "The client token you have provided is associated with a "
                "resource that is already deleted or was created with other parameters.")
        if any(m.phase in ("ending", "gone") for m in known[1]["machines"]):
            raise Refusal(
                400, "IdempotentInstanceTerminated", "The client token you have provided is associated with "
                "an instance that has been terminated.")
        return self.reservation(known[1]["reservation"], known[1]["machines"])

    def checked(self, p, zone):
        """Refuses what EC2 refuses; the zone that it shall be."""
        bad = lambda name, value, why: Refusal(400, "InvalidParameterValue", f"Value ({value}) for parameter {name} is "
                                               f"invalid. {why}")
        type = p["InstanceType"]
        if type not in self.types:
            raise bad("InstanceType", type, "Invalid value for InstanceType.")
        if not re.fullmatch(r"ami-[0-9a-f]{8,17}", p["ImageId"]):
            raise Refusal(400, "InvalidAMIID.Malformed", f"Invalid id: \"{p['ImageId']}\"")
        if p["ImageId"] not in IMAGES:
            raise Refusal(400, "InvalidAMIID.NotFound", f"The image id '[{p['ImageId']}]' does not exist")
        if "KeyName" in p and ("key", self.region, p["KeyName"]) not in self.named:
            raise Refusal(400, "InvalidKeyPair.NotFound", f"The key pair '{p['KeyName']}' does not exist")
        self.check_network(p, type, zone)
        self.check_user_data(p)
        target = p.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
        if target and (target != dict(CapacityReservationId=RESERVATION) or type != "p4d.24xlarge"):
            raise Refusal(400, "ReservationCapacityExceeded", "The requested reservation does not have sufficient "
                          "compatible and available capacity for this request.")
        if zone and zone not in ZONES[self.region]:
            raise bad("availabilityZone", zone, f"Subnets can currently only be created in: {ZONES[self.region]}")
        sold = [z for z in ZONES[self.region] if z in self.types[type].facts.get("zones", ZONES[self.region])]
        if not sold or (zone and zone not in sold):
            raise Refusal(
                400, "Unsupported", f"Your requested instance type ({type}) is not supported in your requested "
                f"Availability Zone ({zone}). Please retry your request by choosing {', '.join(sold)}.")
        for group in seq(p.get("TagSpecification")):
            if group.get("ResourceType") not in ("instance", "volume", "spot-instances-request", "network-interface"):
                raise bad("resourceType", group.get("ResourceType"), "It cannot be tagged on create.")
            tags_of(group.get("Tag"))
        return zone or sold[0]

    def check_user_data(self, p):
        if "UserData" in p:
            plain = unbase64(p["UserData"])
            if plain is None:
                raise Refusal(400, "InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
            if len(plain) > 16384:
                raise Refusal(400, "InvalidParameterValue", "User data is limited to 16384 bytes")
        if not p["MinCount"].isdigit() or not p["MaxCount"].isdigit() or not 1 <= int(p["MinCount"]) <= int(
                p["MaxCount"]):
            raise Refusal(400, "InvalidParameterValue", "Value for parameter minCount or maxCount is invalid.")

    def market(self, p, type, zone):
        """(spot, micros of the cap or None)"""
        options = p.get("InstanceMarketOptions", {})
        if not options or options == {"MarketType": "capacity-block"}:
            return False, None
        spot = options.get("SpotOptions", {})
        if options.get("MarketType") != "spot" or spot.get("SpotInstanceType", "one-time") != "one-time":
            raise Refusal(400, "InvalidParameterValue", f"Value ({options}) for parameter MarketType is invalid.")
        if self.types[type].spot is None:
            raise Refusal(400, "Unsupported", f"{type} is not sold as a spot instance.")
        cap = spot.get("MaxPrice")
        if cap is not None and not re.fullmatch(r"\d+(\.\d+)?", cap):
            raise Refusal(400, "InvalidParameterValue", f"Value ({cap}) for parameter price is invalid.")
        if cap is not None and round(float(cap) * 1e6) < self.price_in(zone, type, True):
            raise self.refusal("spot_price", {})
        return True, None if cap is None else round(float(cap) * 1e6)

    def price_in(self, zone, type, spot):
        return int(self.price(type, spot, self.region) * (self.zone_prices.get(zone, 1) if spot else 1))

    def launch(self, p, zone, asked):
        type, count = p["InstanceType"], int(p["MaxCount"])
        placement = p.get("Placement", {}).get("GroupName")
        if not asked and placement and self.placed(placement):  # where the others are
            zone = self.placed(placement)[0].zone
        left = self.world.left(type, zone)
        if left is not None and left < count and not asked:  # EC2 chooses the zone if the request does not
            zone = next((z for z in self.types[type].facts.get("zones", ZONES[self.region])
                         if z in ZONES[self.region] and (self.world.left(type, z) or 0) >= count), zone)
        spot, cap = self.market(p, type, zone)
        self.check_room(type, zone, count)
        self.effect()
        tags = {g["ResourceType"]: tags_of(g.get("Tag")) for g in seq(p.get("TagSpecification"))}
        made, reservation = [], "r-" + self.world.word(17)
        for _ in range(count):
            m = self.made(
                Machine(self.world, "i-" + self.world.word(17), type, self.region, zone, spot,
                        self.price_in(zone, type, spot), tags=tags.get("instance", {}), cap=cap, image=p["ImageId"],
                        key=p.get("KeyName"),
                        reservation=reservation, token=p.get("ClientToken"), user_data=p.get("UserData", ""),
                        groups=self.ordered_groups(p), placement=placement,
                        address=f"10.0.{len(self.world.machines) // 250}.{len(self.world.machines) % 250 + 4}"))
            if spot:
                m.facts["request"] = "sir-" + self.world.word(8, "abcdefghjkmnpqrstuvwxyz23456789")
                self.spot_requests[m.facts["request"]] = dict(machine=m, cap=cap, state="active",
                                                              tags=tags.get("spot-instances-request", {}))
            self.furnish(m, p, tags)
            made.append(m)
        return dict(machines=made, reservation=reservation, answer=self.reservation(reservation, made))

    def furnish(self, machine, p, tags):
        """The disks and the interface that come with an instance."""
        root = ROOTS.get(p["ImageId"], "/dev/sda1")
        given = seq(p.get("BlockDeviceMapping"))
        if root not in [disk["DeviceName"] for disk in given]:  # another device is one more disk
            given = [*given, dict(DeviceName=root, Ebs={})]
        for disk in given:
            ebs = disk.get("Ebs", {})
            self.world.attach("disk", "vol-" + self.world.word(17), tags.get("volume", {}), machine.id,
                              ebs.get("DeleteOnTermination", "true") != "false", region=machine.region,
                              size=ebs.get("VolumeSize", "8"), type=ebs.get("VolumeType", "gp2"))
        nics = seq(p.get("NetworkInterface")) or [{}]
        machine.facts["public"] = nics[0].get("AssociatePublicIpAddress", "true") == "true"
        machine.addresses = int(machine.facts["public"])
        for nic in nics:
            self.world.attach("interface", "eni-" + self.world.word(17), tags.get("network-interface", {}), machine.id,
                              nic.get("DeleteOnTermination", "true") != "false", billable=False, region=machine.region)

    def transition(self, m):
        """Since when it ends, or has ended, where its user has ended it."""
        at = m.billed()[1] if m.phase in ("ending", "gone") and m.reason == "user" else None
        return f"User initiated ({stamp(at, '%Y-%m-%d %H:%M:%S')} GMT)" if at else ""

    def instance(self, m):
        code, state = CODES[m.phase]
        reason = REASONS.get(m.reason) if m.phase in ("ending", "gone", "stopping", "stopped") else None
        alive = m.phase in ("running", )
        number = 3 + list(self.world.machines).index(m.id) % 250
        return dict(instanceId=m.id, imageId=m.facts["image"], instanceState=dict(code=code,
                                                                                  name=state), privateDnsName="",
                    dnsName=f"ec2-127-0-0-{number}.compute.amazonaws.com" if alive and m.facts["public"] else "",
                    reason=self.transition(m), keyName=m.facts["key"], amiLaunchIndex=0, instanceType=m.type,
                    launchTime=stamp(m.launched(), "%Y-%m-%dT%H:%M:%S.000Z"),
                    placement=dict(availabilityZone=m.zone, groupName=m.facts["placement"] or "", tenancy="default"),
                    privateIpAddress=m.facts["address"] if m.phase != "gone" else None,
                    ipAddress=f"127.0.0.{number}" if alive and m.facts["public"] else None,
                    stateReason=dict(code=reason, message=f"{reason}: {reason.rpartition('.')[2]}") if reason else None,
                    clientToken=m.facts["token"], instanceLifecycle="spot" if m.spot else None,
                    spotInstanceRequestId=m.facts.get("request"),
                    blockDeviceMapping=[
                        dict(deviceName="", ebs=dict(volumeId=t.id, status="attached"))
                        for t in self.world.things.values()
                        if t.kind == "disk" and t.ended is None and t.machine == m.id
                    ],
                    tagSet=[dict(key=k, value=v) for k, v in m.tags.items()])

    def reservation(self, id, machines):
        return dict(reservationId=id, ownerId=self.account, groupSet=[],
                    instancesSet=[self.instance(m) for m in machines])

    def here(self, id, code="InvalidInstanceID"):
        """The machine of that id in this region; EC2 remembers the dead for an hour."""
        if not re.fullmatch(r"i-[0-9a-f]{8,17}", id):
            raise Refusal(400, f"{code}.Malformed", f"Invalid id: \"{id}\"")
        m = self.world.machines.get(id)
        if not m or m.region != self.region or not m.visible() or m.reason == "vanished" or \
                (m.ended is not None and self.world.now() - m.ended > 3600):
            raise Refusal(400, f"{code}.NotFound", f"The instance ID '{id}' does not exist")
        return m

    def kept(self, p, rows, fields):
        """The rows that every filter lets through. `fields(row)` gives filter name -> list of values."""
        for f in seq(p.get("Filter")):
            name, values = f.get("Name", ""), seq(f.get("Value"))
            if not values:
                raise Refusal(400, "InvalidParameterValue", f"The filter '{name}' has no values")
            for row in list(rows):
                of = fields(row)
                if name.startswith("tag:") and "tag" in of:
                    have = [of["tag"][name[4:]]] if name[4:] in of["tag"] else []
                elif name in of and name != "tag":
                    have = of[name]
                else:
                    raise Refusal(400, "InvalidParameterValue", f"The filter '{name}' is invalid")
                if not any(fnmatch.fnmatchcase(h, v) for h in have for v in values):
                    rows.remove(row)
        return rows

    def paged(self, p, rows, most=1000, least=5):
        limit = p.get("MaxResults")
        if limit is not None and (not limit.isdigit() or not least <= int(limit) <= most):
            raise Refusal(
                400, "InvalidParameterValue", f"Value ( {limit} ) for parameter maxResults is invalid. Expecting "
                f"a value between {least} and {most}.")
        return self.page(rows, p.get("NextToken"), int(limit or 0), most,
                         Refusal(400, "InvalidNextToken", "The provided next token is invalid."))

    def DescribeInstances(self, p):
        ids = seq(p.get("InstanceId"))
        if ids and ("MaxResults" in p or "NextToken" in p):
            raise Refusal(400, "InvalidParameterCombination", "The parameter instancesSet cannot be used with the "
                          "parameter maxResults")
        rows = [self.here(i) for i in ids] if ids else [
            m for m in self.world.machines.values()
            if m.region == self.region and m.listed() and m.visible() and m.reason != "vanished" and
            (m.ended is None or self.world.now() - m.ended < 3600)
        ]
        rows = self.kept(
            p, rows, lambda m: {
                "tag": m.tags, "tag-key": list(m.tags), "instance-state-name": [CODES[m.phase][
                    1]], "instance-id": [m.id], "instance-type": [m.type], "availability-zone": [m.zone],
                "client-token": [m.facts["token"] or ""], "instance-lifecycle": ["spot"]
                if m.spot else [], "key-name": [m.facts["key"] or ""]
            })
        rows, more = self.paged(p, rows)
        return dict(reservationSet=[self.reservation(m.facts["reservation"], [m]) for m in rows], nextToken=more or
                    None)

    def changed(self, p, act):
        rows = [self.here(i) for i in seq(p["InstanceId"])]
        before = [CODES[m.phase] for m in rows]
        self.effect()
        for m in rows:
            act(m)
        state = lambda s: dict(code=s[0], name=s[1])
        return dict(instancesSet=[
            dict(instanceId=m.id, currentState=state(CODES[m.phase]), previousState=state(b))
            for m, b in zip(rows, before)
        ])

    def TerminateInstances(self, p):
        return self.changed(p, lambda m: m.terminate())

    def StopInstances(self, p):

        def stop(m):
            if m.spot:
                raise Refusal(
                    400, "UnsupportedOperation", "You can't stop the Spot Instance because it is associated "
                    "with a one-time Spot Instance request.")
            if m.phase not in ("running", "stopping", "stopped"):
                raise Refusal(400, "IncorrectInstanceState",
                              f"The instance '{m.id}' is not in a state from which it can "
                              "be stopped.")
            if m.phase == "running":
                m.stop()

        return self.changed(p, stop)

    def StartInstances(self, p):

        def start(m):
            if m.phase not in ("running", "starting", "stopped"):
                raise Refusal(400, "IncorrectInstanceState",
                              f"The instance '{m.id}' is not in a state from which it can "
                              "be started.")
            if m.phase == "stopped":
                self.check_room(m.type, m.zone, 0)
                m.restart()

        return self.changed(p, start)

    def ModifyInstanceAttribute(self, p):
        m, type = self.here(p["InstanceId"]), p.get("InstanceType", {}).get("Value")
        if m.phase != "stopped":
            raise Refusal(400, "IncorrectInstanceState", f"The instance '{m.id}' is not in the 'stopped' state.")
        if type not in self.types:
            raise Refusal(400, "InvalidParameterValue", f"Invalid value '{type}' for InstanceType.")
        self.effect()
        m.type = type
        m.costs(self.price(type, m.spot, m.region))
        return {"return": True}
