"""Whether the ledger is the bill: each machine of a fake, part by part (the machine, its disk).

Both have the same prices and the same way from time to money. Their instants may differ, by what nobody can know:
- A ledger begins no later than the bill, and no sooner than its machine was asked for: a cloud tells the time of
  creation in whole seconds, or minutes, or not at all; one whose start is free does not say since when it runs.
- It ends no sooner than the bill, and when its run is over at the latest: a cloud that does not say when a machine
  ended is believed when it first shows it as gone, or when that is proven.
What lies between is allowed for, instant by instant, and nothing else: a ledger of other prices, of a part more or
less, of another rounding, that begins or ends at another time, is wrong. Public addresses are on the bills (`bills` of
a fake's state), and in no ledger yet.
"""
import json, sqlite3

PARTS = ("machine", "disk")


def whole_units(billing, price, start, to):
    """A machine's own time as money, by a computation of this test's own: micros, and instants in microseconds."""
    ms, unit = (to - start) // 1000, billing["unit_s"] * 1000
    used = max(-(-ms // unit) * unit, billing["minimum_s"] * 1000)
    return -(-price * used // 3_600_000)


def by_time(price, start, to):
    return -(-price * ((to - start) // 1000) // 3_600_000)


def us(seconds):
    return round(seconds * 1e6)


class Bills:

    def __init__(self, user):
        self.state, self.wrong, self.equal, self.above = user.ask("state"), [], 0, 0
        rows = json.loads(user.rille("cost", "--json")[1] or "[]")
        self.told = {m["machine"].rpartition("/")[2]: m["cost_micros"] for r in rows for m in r.get("machines", [])}
        self.asked, self.segments = {}, {}
        with sqlite3.connect(f"file:{user.root}/home/rille/journal.db?mode=ro", uri=True) as db:
            for id, at in db.execute("SELECT m.machine_id,l.created_us FROM machines m JOIN leases l ON l.id=m.lease"):
                self.asked[id.rpartition("/")[2]] = at
            for id, *row in db.execute("SELECT machine_id,part,from_us,to_us,micros_per_hour FROM segments"):
                self.segments.setdefault(id.rpartition("/")[2], []).append(row)

    def compare(self, ends):
        """ends: machine -> when the last process of its run had ended. Gives what is wrong."""
        for m in self.state["machines"]:
            bill = sum(m["bills"][part] for part in PARTS)
            if m["id"] not in self.told:
                if bill or not m["failed"]:
                    self.wrong.append(f"the ledger does not know {m['id']}: {m}")
                continue
            asks = [self.part(m, part, us(ends[m["id"]])) for part in PARTS]
            money = sum(asks)
            if money != self.told[m["id"]]:
                self.wrong.append(f"{m['id']}: by its rows it is {money}, and the ledger says {self.told[m['id']]}: "
                                  f"{self.segments[m['id']]}")
            self.equal += asks[0] == m["bills"][PARTS[0]]
            self.above = max(self.above, money - bill)
        return self.wrong

    def part(self, m, part, over):
        """What the ledger asks for it by its rows, after a look at each."""
        rows = [row[1:] for row in self.segments[m["id"]] if row[0] == part and row[-1]]  # what costs nothing is none
        billing, bill = self.state["billing"], m["bills"][part]
        billed = [[*m["billed"], m["price"]]] if part == "machine" else m["parts"][part]
        billed = [row for row in billed if row[2]]
        what = f"{m['id']}, its {part}: the ledger has {rows}, the bill {billed}"
        if len(rows) != len(billed) or len(rows) > 1:
            self.wrong.append(f"{what}: not the same pieces")
        if len(rows) != 1 or len(billed) != 1:
            return 0
        (start, to, price), (began, ended, cost) = rows[0], billed[0]
        if to is None or ended is None:
            self.wrong.append(f"{what}: it goes on")
            return 0
        money = whole_units(billing, price, start, to) if part == "machine" else by_time(price, start, to)
        if price != round(cost):
            self.wrong.append(f"{what}: not the same price")
        if not self.asked[m["id"]] <= start <= us(began) + 1000:  # instants are cut to milliseconds, here and there
            self.wrong.append(f"{what}: it was asked for at {self.asked[m['id']]}")
        if not us(ended) - 1000 <= to <= over:
            self.wrong.append(f"{what}: its run was over at {over}")
        if money < bill:
            self.wrong.append(f"{what}: {money} is less than {bill}")
        return money
