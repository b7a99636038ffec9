"""What stands behind every fake provider: two clocks, machines that live and die in time, the objects they leave, and
what all of it costs.

World time turns by itself and by `advance`; the life of machines, tokens and bills is in world time. Wall time (the
Date header, the check of signatures) is the true time plus `clock_offset`, and follows an advance only if told to.
Money is integers of millionths of the provider's currency. Nothing here locks: the server calls under its one lock.
"""
import datetime, math, random, re, time

HOUR_S, MONTH_H = 3600, 730
YEAR_H = 8760
RESERVED = {1: 0.6, 3: 0.4}  # price of an hour reserved for so many years, as a share of the price on demand
UTC = datetime.timezone.utc


def stamp(seconds, form="%Y-%m-%dT%H:%M:%SZ"):
    return datetime.datetime.fromtimestamp(seconds, UTC).strftime(form)


def unstamp(text, form="%Y-%m-%dT%H:%M:%SZ"):
    """Seconds, or None where the text is not of that form."""
    try:
        return datetime.datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
    except (ValueError, TypeError):
        return None


class Type:
    """A row of a catalogue. Prices are micros of an hour of the whole machine; spot None: not sold as spot."""

    def __init__(self, name, gpu, count, gpu_gib, vcpus, memory_gib, on_demand, spot, **facts):
        self.name, self.gpu, self.count, self.gpu_gib = name, gpu, count, gpu_gib
        self.vcpus, self.memory_gib, self.on_demand, self.spot, self.facts = vcpus, memory_gib, on_demand, spot, facts


class Thing:
    """Something that costs money or stays behind beside machines: a disk, an address, an interface, a key."""

    def __init__(self, kind, id, tags, machine, dies_with, created, billable=True, **facts):
        self.kind, self.id, self.tags, self.machine, self.dies_with = kind, id, dict(tags), machine, dies_with
        self.of = machine  # whose bill it is on, also when it has outlived that
        self.created, self.ended, self.billable, self.facts = created, None, billable, facts

    def view(self):
        return dict(kind=self.kind, id=self.id, tag=tag_of(self.tags, ""), tags=self.tags, machine=self.machine,
                    of=self.of, alive=self.ended is None, billable=self.billable, created=self.created,
                    ended=self.ended)


def tag_of(tags, name):
    """The tag that Rille gave: the shortest key that speaks of it, else the machine's name."""
    keys = sorted((k for k in tags if "rille" in k.lower()), key=lambda k: (len(k), k))
    return tags[keys[0]] if keys else name


class Machine:
    """Phases: starting, running, stopping, stopped, ending, gone. What will happen is in `plan`, earliest first."""

    def __init__(self, world, id, type, region, zone, spot, price, name="", tags=(), cap=None, **facts):
        self.world, self.id, self.type, self.region, self.zone = world, id, type, region, zone
        self.spot, self.price, self.cap, self.name, self.tags, self.facts = spot, price, cap, name, dict(tags), facts
        self.created = world.now()
        self.visible_at, self.listed_at = self.created + world.lag, self.created + world.list_lag
        self.phase, self.since, self.reason, self.ended = "starting", self.created, "", None
        self.failed = False  # it could not be made
        self.notice_at = self.reclaim_at = self.expires_at = None
        self.started = None  # for the last time, after a stop
        self.addresses = 0  # public ones that come and go with it
        self.segments = []  # [from, to or None, micros per hour]
        self.plan = [(self.created + world.start, "running", "")]
        if not world.billing["from_live"]:
            self.charge(self.created)

    def charge(self, at):
        if not self.segments or self.segments[-1][1] is not None:
            self.segments.append([at, None, self.price])

    def rest(self, at):
        if self.segments and self.segments[-1][1] is None:
            self.segments[-1][1] = at

    def costs(self, price):
        """Another price from now on."""
        self.price, now = price, self.world.now()
        if self.segments and self.segments[-1][1] is None:
            self.rest(now)
            self.charge(now)

    def stop(self):
        self.enter("stopping", self.world.now(), "user")

    def restart(self):
        self.started = self.world.now()
        self.enter("starting", self.started, "user")
        self.go("running", self.world.now() + self.world.start)

    def launched(self):
        """When it was last asked to start."""
        return self.started or self.created

    def go(self, phase, at, reason=""):
        self.plan = sorted(self.plan + [(at, phase, reason)])

    def tick(self, now):
        while self.plan and self.plan[0][0] <= now and self.phase != "gone":
            at, phase, reason = self.plan.pop(0)
            self.enter(phase, at, reason)

    def enter(self, phase, at, reason):
        if self.phase == "gone" or (self.phase == "ending" and phase != "gone"):
            return
        self.phase, self.since, self.reason = phase, at, reason or self.reason
        if phase == "running":
            self.charge(at)
        elif phase == "stopping":
            self.go("stopped", at + self.world.end)
        elif phase == "stopped":
            self.rest(at)
        elif phase == "failed":  # it was accepted and could not be made: it costs nothing and fades away
            self.failed = True
            self.segments, self.plan = [], [(at + self.world.fade, "gone", reason)] if self.world.fade else []
        elif phase == "finished":  # by itself, what Kubernetes knows
            self.plan = []
            self.rest(at)
        elif phase == "ending":
            self.plan = [(at + self.world.end, "gone", reason)]
            if self.world.billing["until"] == "ending":
                self.rest(at)
        elif phase == "gone":
            self.plan, self.ended = [], at
            self.rest(at)
            self.world.buried(self, at)

    def terminate(self, reason="user"):
        if self.phase not in ("ending", "gone"):
            self.enter("ending", self.world.now(), reason)
            self.tick(self.world.now())

    def vanish(self):
        self.enter("gone", self.world.now(), "vanished")

    def expire(self, at):
        """The provider's own dead-man switch."""
        self.plan = [p for p in self.plan if p[2] != "expired"]
        self.expires_at = at
        if at is not None:
            self.go("ending", at, "expired")

    def reclaim(self, in_seconds, phase="ending"):
        """The provider wants its spot machine back; the notice stands from `notice` seconds before it."""
        at = self.world.now() + in_seconds
        self.reclaim_at, self.notice_at = at, at - self.world.notice
        self.go(phase, at, "reclaim")

    def noticed(self):
        return self.reclaim_at is not None and self.world.now() >= self.notice_at and self.phase == "running"

    def billed(self):
        """From when until when its own time costs, None while it does."""
        return [self.segments[0][0], self.segments[-1][1]] if self.segments else [self.created, self.created]

    def parts(self):
        """What it costs beside its own time: part -> rows of (from, to or None, micros per hour)."""
        out, prices = dict(disk=[], address=[]), self.world.prices
        for t in self.world.things.values():
            if t.of == self.id and t.kind in out:
                to = self.billed()[1] if t.facts.get("inside") else t.ended
                out[t.kind].append((t.created, to, self.world.hourly(t.kind, t.facts)))
        if self.addresses:
            out["address"].append((self.created, self.ended, self.addresses * prices["address"] * 1e6))
        return out

    def bills(self):
        """The bill by its parts. What is beside the machine is charged for by the time that it was there."""
        now = self.world.now()
        return dict(machine=self.bill(), **{
            part: sum(math.ceil(((now if to is None else to) - start) * price / HOUR_S) for start, to, price in rows)
            for part, rows in self.parts().items()
        })

    def bill(self):
        b, total, first = self.world.billing, 0, True
        for span in self.spans():
            began, (last, to, price) = span[0][0], span[-1]
            lived = int(-(-((to if to is not None else self.world.now()) - began) // 1))
            used = -(-lived // b["unit_s"]) * b["unit_s"]
            used = max(used, b["minimum_s"]) if first else used
            micros = price * (used if last == began else used - (last - began))
            micros += sum(was * (until - since) for since, until, was in span[:-1])
            total, first = total + int(-(-micros // HOUR_S)), False
        return total

    def spans(self):
        """Its segments, those together between which nothing changed but the price."""
        out = []
        for segment in self.segments:
            if out and out[-1][-1][1] == segment[0]:
                out[-1].append(segment)
            else:
                out.append([segment])
        return out

    def visible(self):
        return self.world.now() >= self.visible_at

    def listed(self):
        return self.world.now() >= self.listed_at

    def view(self):
        return dict(id=self.id, name=self.name, tag=tag_of(self.tags, self.name), tags=self.tags, state=self.phase,
                    reason=self.reason, spot=self.spot, type=self.type, region=self.region, zone=self.zone,
                    created=self.created, ended=self.ended, expires=self.expires_at, reclaim=self.reclaim_at,
                    price=self.price, bill=self.bill(), bills=self.bills(), billed=self.billed(), parts=self.parts(),
                    segments=self.segments,
                    failed=self.failed or ("node" in self.facts and not self.facts["node"]))  # no node was free


class World:

    def __init__(self, name, seed, lag, start, billing):
        self.dice = random.Random(f"{name}-{seed}")
        self.billing = dict(dict(unit_s=1, minimum_s=0, from_live=False, until="ending"), **billing)
        self.advanced, self.clock_offset, self.began = 0.0, 0.0, int(time.time())
        self.lag, self.list_lag, self.start, self.end, self.notice = lag, lag, start, 1.0, 120.0
        self.page_size, self.token_lifetime, self.pays_bid, self.ssh_port = 0, 86400.0, False, 22
        self.fade = 600.0  # how long a machine that failed to start is still there; 0: until it is deleted
        self.machines, self.things, self.tokens = {}, {}, {}
        self.prices = dict(disk=0.0, address=0.0)  # dollars: of a GB for a month; of a public address for an hour
        self.quota, self.stock = None, {}  # machines at once; {type or type@zone: how many are left}

    def now(self):
        return time.time() + self.advanced

    def wall(self):
        return time.time() + self.clock_offset

    def of_wall(self, seconds):
        """In world time, an instant that a client has named by the wall clock."""
        return seconds + self.advanced - self.clock_offset

    def tick(self):
        now = self.now()
        for machine in self.machines.values():
            machine.tick(now)

    def word(self, length, letters="0123456789abcdef"):
        return "".join(self.dice.choice(letters) for _ in range(length))

    def uuid(self):
        return "-".join(self.word(n) for n in (8, 4)) + f"-4{self.word(3)}-a{self.word(3)}-{self.word(12)}"

    def alive(self):
        return [m for m in self.machines.values() if m.phase != "gone"]

    def add(self, machine):
        old = self.machines.pop(machine.id, None)
        if old:  # a name may be used again once its machine is gone
            old.id = f"{machine.id}~{len(self.machines)}"
            for thing in self.things.values():
                thing.of = old.id if thing.of == machine.id else thing.of
            self.machines[old.id] = old
        self.machines[machine.id] = machine
        machine.tick(self.now())
        return machine

    def attach(self, kind, id, tags=(), machine=None, dies_with=True, billable=True, **facts):
        thing = Thing(kind, id, dict(tags), machine, dies_with, self.now(), billable, **facts)
        self.things[id] = thing
        return thing

    def buried(self, machine, at):
        for thing in self.things.values():
            if thing.machine == machine.id and thing.ended is None:
                if thing.dies_with:
                    thing.ended = at
                else:
                    thing.machine = None

    def left(self, type, zone):
        """How many of this type the zone still has; None: enough."""
        known = [n for n in (self.stock.get(type), self.stock.get(f"{type}@{zone}")) if n is not None]
        return min(known) if known else None

    def taken(self, type, zone, count):
        for key in (type, f"{type}@{zone}"):
            if self.stock.get(key) is not None:
                self.stock[key] -= count

    def hourly(self, kind, facts):
        """What such a thing costs, in micros."""
        size = str(facts.get("size", 0))  # as its creator said it
        times = 1 if kind != "disk" else float(size) / MONTH_H if re.fullmatch(r"\d+(\.\d+)?", size) else 0
        return times * self.prices.get(kind, 0) * 1e6

    def reprice(self, type, price_of, reclaim):
        """A new price counts for those that run; a spot machine whose cap it passes is reclaimed with a notice."""
        for m in self.alive():
            if m.type != type or m.phase in ("ending", "gone"):
                continue
            price = price_of(m.type, m.spot, m.region)
            if m.spot and m.cap is not None and price > m.cap:
                reclaim(m, self.notice)
            elif m.spot and price != m.price and not self.pays_bid:
                m.costs(price)

    def remember(self, scope, token, body, result):
        self.tokens[(scope, token)] = (body, result, self.now())

    def recall(self, scope, token):
        """(body, result) of that token while it is remembered, else None."""
        known = self.tokens.get((scope, token))
        return known[:2] if known and self.now() - known[2] <= self.token_lifetime else None

    def view(self):
        things = [dict(t.view(), price=self.hourly(t.kind, t.facts)) for t in self.things.values()]
        return dict(machines=[m.view() for m in self.machines.values()], objects=things,
                    alive=len(self.alive()) + sum(t["alive"] and t["billable"] for t in things), now=self.now(),
                    wall=self.wall())
