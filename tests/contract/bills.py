"""Whether the ledger is the bill: each machine of a fake, part by part (the machine, its disk, its public address).

Both have the same prices and the same way from time to money. Their instants may differ, by what cannot be known:
- A ledger begins no later than the bill, and no sooner than its machine was asked for: a cloud tells the time of
  creation in whole seconds, or minutes, or not at all; one whose start is free may not say since when it runs.
- It ends no sooner than the bill. A cloud that says when its machine ended says so by the second. Else it is believed
  when it first shows the machine as gone: a runner that was alive has looked once after that end, one that was killed
  then has looked once more.
- A machine that becomes another type is stopped and started in between, and most clouds tell neither instant: both
  prices count from before it was asked for until its provider has said that it runs again, which is after the call
  before and before the call after.
What lies between is allowed for, instant by instant, and nothing else: a ledger of other prices, of a part more or
less, of another rounding, that begins or ends at another time, is wrong.
"""
import json, math, sqlite3

PARTS = ("machine", "disk", "address")
CUT_US = 1000  # instants are cut to milliseconds, here and there


def whole_units(billing, price, start, to):
    """A machine's own time as money, by a computation of this test's own: micros, and instants in microseconds."""
    ms, unit = (to - start) // 1000, billing["unit_s"] * 1000
    used = max(-(-ms // unit) * unit, billing["minimum_s"] * 1000)
    return -(-price * used // 3_600_000)


def by_time(price, start, to):
    return -(-price * ((to - start) // 1000) // 3_600_000)


def own(id):
    """As the provider knows it, without the region, or the mark of a volume."""
    return id.rpartition("/")[2].removeprefix("volume-")


def us(seconds):
    return round(seconds * 1e6)


def stints(rows):
    """Those at one price after another as one: a machine that was stopped meanwhile."""
    out = []
    for start, to, price in rows:
        if out and out[-1][2] == price:
            out[-1][1] = to
        else:
            out.append([start, to, price])
    return out


class Bills:

    def __init__(self, user):
        self.state, self.wrong, self.equal, self.above = user.ask("state"), [], 0, 0
        rows = json.loads(user.rille("cost", "--json")[1] or "[]")
        self.told = {own(m["machine"]): m for r in rows for m in r.get("machines", [])}
        self.asked, self.segments, self.calls = {}, {}, {}
        with sqlite3.connect(f"file:{user.root}/home/rille/journal.db?mode=ro", uri=True) as db:
            for id, at, run in db.execute("SELECT m.machine_id,l.created_us,r.number FROM machines m "
                                          "JOIN leases l ON l.number=m.lease JOIN runs r ON r.id=l.run"):
                id = own(id)
                self.asked[id] = at
                self.calls[id] = {name: (start, to) for name, start, to in db.execute(
                    "SELECT name,started_us,ended_us FROM entries WHERE id>>32=? AND kind='call'", (run, ))}
            for id, *row in db.execute("SELECT machine_id,part,from_us,to_us,micros_per_hour FROM segments "
                                       "ORDER BY from_us"):
                self.segments.setdefault(own(id), []).append(row)

    def volumes(self):
        """Those of the fake's disks that never were a part of a machine."""
        return [o for o in self.state["objects"] if o["kind"] == "disk" and o["of"] is None]

    def compare_volumes(self, over):
        """over: volume -> when the last process of its run had ended. Gives what is wrong."""
        for o in self.volumes():
            known, rows = self.told.get(own(o["id"])), [r[1:] for r in self.segments.get(own(o["id"]), []) if r[-1]]
            what = f"the volume {o['id']}: the ledger has {rows}, the fake {o}"
            if not known or len(rows) != 1 or rows[0][1] is None or o["ended"] is None:
                self.wrong.append(f"{what}: not one piece that has ended")
                continue
            start, to, price = rows[0]
            bill = by_time(o["price"], us(o["created"]), us(o["ended"]))
            if price != round(o["price"]):
                self.wrong.append(f"{what}: not the same price")
            if known["disk_micros"] != by_time(price, start, to) or known["disk_micros"] < bill:
                self.wrong.append(f"{what}: the ledger says {known}, by its rows it is {by_time(price, start, to)}, "
                                  f"the bill {bill}")
            if not self.asked[own(o["id"])] <= start <= us(o["created"]) + CUT_US:
                self.wrong.append(f"{what}: begins at {start}, the bill at {us(o['created'])}")
            if not us(o["ended"]) - CUT_US <= to <= us(over[o["id"]]):
                self.wrong.append(f"{what}: ends at {to}, the bill at {us(o['ended'])}")
        return self.wrong

    def compare(self, spans, becomes=None):
        """spans: machine -> (when its runner was killed or None, when the last process of its run had ended); becomes:
        the names of the calls before and after it became another type. Gives what is wrong."""
        for m in self.state["machines"]:
            bill = sum(m["bills"].values())
            if m["id"] not in self.told:
                if bill or not m["failed"]:
                    self.wrong.append(f"the ledger does not know {m['id']}: {m}")
                continue
            known = self.told[m["id"]]
            for part in PARTS:
                money = self.part(m, part, becomes, *spans[m["id"]])
                if money != known[f"{part}_micros"]:
                    self.wrong.append(f"{m['id']}, its {part}: by its rows it is {money}, and the ledger says {known}: "
                                      f"{self.segments[m['id']]}")
                if known[f"{part}_micros"] < m["bills"][part]:
                    self.wrong.append(f"{m['id']}, its {part}: {known[f'{part}_micros']} is less than the bill's "
                                      f"{m['bills'][part]}")
            self.equal += known["machine_micros"] == m["bills"]["machine"]
            self.above = max(self.above, known["cost_micros"] - bill)
        return self.wrong

    def part(self, m, part, becomes, killed, over):
        """What the ledger asks for it by its rows, after a look at each."""
        rows = [row[1:] for row in self.segments[m["id"]] if row[0] == part and row[-1]]  # what costs nothing is none
        billed = stints([row for row in (m["segments"] if part == "machine" else m["parts"][part]) if row[2]])
        what = f"{m['id']}, its {part}: the ledger has {rows}, the bill {billed}"
        if len(rows) != len(billed) or len(rows) > (2 if becomes and part == "machine" else 1):
            self.wrong.append(f"{what}: not the same pieces")
            return 0
        money = 0
        for n, ((start, to, price), (began, ended, cost)) in enumerate(zip(rows, billed)):
            if to is None or ended is None:
                self.wrong.append(f"{what}: it goes on")
                return 0
            money += whole_units(self.state["billing"], price, start, to) if part == "machine" else \
                by_time(price, start, to)
            if price != round(cost):
                self.wrong.append(f"{what}: not the same price")
            first, last = self.asked[m["id"]], self.latest(part, ended, killed, over)
            if n == 1:
                first = self.calls[m["id"]][becomes[0]][1]
            if len(rows) == 2 and n == 0:
                last = self.calls[m["id"]][becomes[1]][0]
            if not first <= start <= us(began) + CUT_US:
                self.wrong.append(f"{what}: begins at {start}, the bill at {us(began)}; the most is {first}")
            if not us(ended) - CUT_US <= to <= last + CUT_US:
                self.wrong.append(f"{what}: ends at {to}, the bill at {us(ended)}; the most is {last}")
        return money

    def latest(self, part, ended, killed, over):
        """When a runner must have heard of it: before it asks for the end a second time. One that was killed after the
        end may not have written what it heard: then before the third."""
        if part == "machine" and self.state["billing"].get("tells_end"):
            return (math.floor(ended) + 1) * 1_000_000
        again = [us(at) for at in self.state["ends"] if ended < at and us(at) <= us(over)]
        n = 1 + (killed is not None and killed > ended)
        return again[n] if len(again) > n else us(over)
