#!/usr/bin/env python3
"""Ranks as processes: what they give together, training on halves of a batch beside the whole, and what becomes of the
others when one is killed or differs. usage: collective_test.py RILLE"""
import re, signal, sys

from ranks import Ranks
from tap import check, finish

processes = Ranks(sys.argv[1], "collective")
root, start, ended, wait_for = processes.root, processes.start, processes.ended, processes.wait_for

together = """
local function all(t) return table.concat(t:totable(), " ") end
local x = dev:tensor { rank + 1, 10 * rank }
assert(comm:all_reduce(x) == x)
print("sum", all(x))
print("mean", all(comm:all_reduce(dev:tensor { rank + 1 }, "mean")))
print("gather", all(comm:all_gather(dev:tensor { rank, -rank })))
print("scatter", all(comm:reduce_scatter(dev:arange { world } + rank, "max")))
local y = comm:broadcast(dev:tensor { rank, 7 }, world - 1)
print("broadcast", all(y))
local large = dev:ones { 1000, 300 } * (rank + 1)
print("large", comm:all_reduce(large):mean():item())
-- More than one message holds: 12, 4, 12 and 40 MB.
local many = {}
for i, n in ipairs { 3e6, 1e6, 3e6, 1e7 } do many[i] = dev:full { n, value = i * (rank + 1) } end
comm:all_reduce(many, "mean")
print("many", many[1]:mean():item(), many[2]:max():item(), many[3]:min():item(), many[4]:mean():item())
local view = dev:zeros { 4, 3 } + rank
comm:all_reduce(view:transpose(1, 2))
local half = comm:all_reduce(dev:tensor({ 1.5, 256 + rank }, { dtype = "bf16" }))
print("bf16", half.dtype, all(half))
if rank == 0 then comm:send(dev:tensor { 3, 1, 4 }, 1) end
if rank == 1 then print("got", all(comm:recv(dev:zeros { 3 }, 0))) end
local next, previous = (rank + 1) % world, (rank - 1) % world
print("ring", all(comm:sendrecv(dev:tensor { rank, 5 }, next, dev:zeros { 2 }, previous)))
local grid = dev:zeros { 3, 2 } + rank
print("ring columns", all(comm:sendrecv(grid:narrow(2, 1, 1), next, grid:narrow(2, 2, 1), previous):reshape(3)),
      all(grid:reshape(6)))
local handed = rille.compile(function(t) return comm:sendrecv(t * 2, next, t, previous) + 1 end)
for i = 1, 4 do print("handed", all(handed(dev:tensor { i + rank }))) end
print("no rank", pcall(comm.sendrecv, comm, grid, 0, grid, world))
print("half itself", pcall(comm.sendrecv, comm, grid, rank, grid, next))
local twice = rille.compile(function(t) comm:all_reduce(t) return t * 2 end)
for i = 1, 4 do print("compiled", all(twice(dev:tensor { i + rank }))) end
comm:barrier()
print(comm, comm.rank, comm.world, comm.transport, comm.device)
comm:close()
print(pcall(comm.barrier, comm))
"""

for world in (2, 4):
    for transport in ("any", "tcp"):
        results = ended(start(f"together-{world}-{transport}", together, world, transport=transport))
        name = f"{world} ranks, {transport}: "
        check(name + "all end well", all(code == 0 for code, _, _ in results), results)
        lines = [[line.split("\t", 1) for line in said.splitlines() if "\t" in line] for _, said, _ in results]
        for rank, mine in enumerate(lines):
            said = {}
            for key, value in mine:
                said.setdefault(key, []).append(value)
            total = world * (world + 1) // 2
            wanted = {
                "sum": f"{total} {10 * (total - world)}", "mean": f"{total / world:g}",
                "gather": " ".join(f"{r} {-r if r else '-0'}" for r in range(world)), "scatter": f"{rank + world - 1}",
                "broadcast": f"{world - 1} 7", "large": f"{total}",
                "many": "\t".join(f"{i * total / world:g}" for i in range(1, 5)),
            }
            for key, value in wanted.items():
                got = said.get(key, [""])[0].replace("-0", "0") if key == "gather" else said.get(key, [""])[0]
                check(f"{name}{key} at rank {rank}", got == value.replace("-0", "0"), (got, value))
            compiled = [f"{2 * sum(i + r for r in range(world))}" for i in range(1, 5)]
            check(f"{name}compiled at rank {rank}", said.get("compiled") == compiled, (said.get("compiled"), compiled))
            before = (rank - 1) % world
            check(f"{name}ring at rank {rank}", said.get("ring") == [f"{before} 5"], said.get("ring"))
            columns = f"{before} {before} {before}\t{' '.join([f'{rank} {before}'] * 3)}"
            check(f"{name}ring of views at rank {rank}", said.get("ring columns") == [columns], said)
            handed = [f"{2 * (i + before) + 1}" for i in range(1, 5)]
            check(f"{name}compiled ring at rank {rank}", said.get("handed") == handed, (said.get("handed"), handed))
            check(f"{name}wrong ranks at rank {rank}", "there is no such rank" in said.get("no rank", [""])[0]
                  and "with itself and with another rank" in said.get("half itself", [""])[0], said)
            place = "tcp" if transport == "tcp" else "shared memory"
            check(f"{name}it says what it is at rank {rank}", f"Communicator rank {rank} of {world}, cpu, {place}" in
                  results[rank][1] and "the communicator is closed" in results[rank][1], results[rank][1])
        check(name + "bf16 the same everywhere", len({re.search(r"bf16\t.*", said).group() for _, said, _ in results
                                                     if "bf16" in said}) == 1, results)
        check(name + "what rank 0 sends", "got\t3 1 4" in results[1][1], results[1][1])

train = """
local seed = 3
local function data()
  local d = rille.device("cpu")
  d:seed(11)
  return d:randn { 8, 16 }, d:randint { 8, high = 4 }
end
local x, y = data()
if world > 1 then
  local part = 8 / world
  x, y = x:narrow(1, 1 + rank * part, part), y:narrow(1, 1 + rank * part, part)
end
-- Rank 0's weights count: the others begin with their own.
local model = rille.nn.mlp({ 16, 32, 4 }, { seed = seed + rank }):to(dev)
comm:broadcast(model)
local opt = rille.optim.adamw(model:parameters(), { lr = 1e-2 })
local update = function(a, b)
  local loss = model(a):cross_entropy(b)
  loss:backward()
  comm:average_gradients(opt)
  rille.optim.clip_grad_norm(model:parameters(), 1.0)
  opt:step()
  return comm:all_reduce(loss:detach(), "mean")
end
if COMPILED then update = rille.compile(update) end
for i = 1, 20 do print(("loss\\t%.8f"):format(update(x, y):item())) end
"""


def losses(results):
    return [[float(v) for v in re.findall(r"loss\t(\S+)", said)] for _, said, _ in results]


for compiled in ("false", "true"):
    body = train.replace("COMPILED", compiled)
    whole = ended(start("whole-" + compiled, body, 1))
    halves = ended(start("halves-" + compiled, body, 2))
    all_losses = losses(whole + halves)
    check(f"training ends well, compiled = {compiled}", [len(v) for v in all_losses] == [20] * 3
          and all_losses[0][19] < all_losses[0][0] / 2, (whole, halves))
    near = max((abs(a - b) for v in all_losses[1:] for a, b in zip(v, all_losses[0])), default=1)
    check(f"two halves of a batch train as the whole, compiled = {compiled}", near < 1e-5, near)
    check(f"both ranks have the same bits, compiled = {compiled}", all_losses[1] == all_losses[2], all_losses[1:])

endless = """
local t = dev:ones { 1000 }
for i = 1, 1e9 do
  comm:all_reduce(t, "mean"):sum():item()
  if i == 20 then mark "going" end
end
"""
for transport in ("any", "tcp"):
    mark = f"{root}/killed-{transport}-"
    ranks = start("killed-" + transport, endless, 4, transport=transport, first=mark)
    going = all(wait_for(f"{mark}going{r}", ranks) for r in range(4))
    ranks[2].send_signal(signal.SIGKILL)
    results = ended(ranks, 60)
    check(f"{transport}: they were at work", going, results)
    for r in (0, 1, 3):
        check(f"{transport}: rank {r} gets the error that rank 2 was killed", results[r][0] == 1
              and "rank 2 is gone during all_reduce mean of f32[1000]" in results[r][2], results[r])

mark = f"{root}/early-"
ranks = start("early", "print('met')", 3, ranks=[0, 1], timeout="3s", first=mark)
results = ended(ranks, 60)
check("all ranks name the rank that does not come",
      all(code == 124 and "rank 2 of 3 did not connect to 127.0.0.1:" in errors for code, _, errors in results),
      results)
results = ended(start("world", "print('met')", 2, only={1: {"world": 3}}), 60)
differs = "rank 1 was made with world = 3, rank 0 with world = 2"
check("all ranks report a different world",
      all(code == 1 and differs in errors for code, _, errors in results), results)
results = ended(start("shapes", "print(comm:all_reduce(dev:zeros { 2, 3 + rank }):sum():item())", 2), 60)
check("all ranks report a different shape, with both shapes", all(
    code == 1 and "all_reduce sum of f32[2, 3]" in errors and "all_reduce sum of f32[2, 4]" in errors
    for code, _, errors in results), results)
results = ended(start("grows", """
local w = dev:zeros({ 3 }):requires_grad_()
local ok, why = pcall(comm.all_reduce, comm, w * 2)
print(ok, why)
comm:broadcast(w)
print(pcall(comm.all_reduce, comm, dev:zeros({ 2 }, { dtype = "i64" }), "mean"))
print(pcall(comm.all_reduce, comm, dev:zeros { 2 }, "median"))
print(pcall(comm.send, comm, dev:zeros { 2 }, 0))
print(pcall(rille.communicator, { rank = 0, world = 2, adress = "127.0.0.1:1" }))
""", 1), 60)
said = results[0][1]
check("mistakes are errors at once", results[0][0] == 0 and "gradients flow through it" in said
      and "is not the name of a reduction" in said and "a rank cannot exchange data with itself" in said
      and "adress" in said, results)

# Ctrl-C while a rank waits for another that is slow: it ends soon, and the other rank gets an error.
mark = f"{root}/interrupted-"
ranks = start("interrupted", """
local t = dev:ones { 10 }
comm:all_reduce(t):sum():item()
mark "going"
local function hold() while not io.open(args.first .. "on") do os.execute("sleep 0.02") end end
if rank == 1 then rille.step("hold", hold) end
for _ = 1, 3 do print(comm:all_reduce(t):sum():item()) end
""", 2, first=mark)
going = all(wait_for(f"{mark}going{r}", ranks) for r in range(2))
ranks[0].send_signal(signal.SIGINT)
results = ended(ranks[:1], 60)
open(f"{mark}on", "w").close()
results += ended(ranks[1:], 60)
check("a rank that waits ends at Ctrl-C", going and results[0][0] == 130, results)
check("and the other rank gets an error", results[1][0] == 1 and "rank 0" in results[1][2], results)
# Groups: even and odd ranks, the last one first; one rank in none; the groups and the whole beside each other.
groups = """
local function all(t) return table.concat(t:totable(), " ") end
local color = nil
if rank ~= 4 then color = rank % 2 end
local group = comm:split(color, -rank)
if group then
  print("group", group.rank, group.world, group.transport, all(group:all_gather(dev:tensor { rank })))
  for i = 1, 20 do group:all_reduce(dev:ones { 1000 }) end
  print("sum", group:all_reduce(dev:tensor { rank }):item(), comm:all_reduce(dev:tensor { 1 }):item())
else
  print("group", group, comm:all_reduce(dev:tensor { 1 }):item())
end
if group and group.world == 2 then
  local one = group:split(group.rank)
  print("one", one.rank, one.world, one:all_reduce(dev:tensor { rank }):item())
end
comm:close()
if group then group:barrier() print("alive", group:all_reduce(dev:tensor { 1 }):item()) end
"""
for transport in ("any", "tcp"):
    results = ended(start("groups-" + transport, groups, 5, transport=transport))
    place = "tcp" if transport == "tcp" else "shared memory"
    check(f"{transport}: groups end well", all(code == 0 for code, _, _ in results), results)
    for rank, members in {0: [2, 0], 2: [2, 0], 1: [3, 1], 3: [3, 1]}.items():
        said = results[rank][1]
        wanted = [f"group\t{members.index(rank)}\t2\t{place}\t{members[0]} {members[1]}\n",
                  f"sum\t{sum(members)}\t5\n", f"one\t0\t1\t{rank}\n", "alive\t2\n"]
        check(f"{transport}: rank {rank} is in its group, at its place", all(w in said for w in wanted), (said, wanted))
    check(f"{transport}: a rank without a color is in none", "group\tnil\t5\n" in results[4][1], results[4])

results = ended(start("group-ends", """
local group = comm:split(rank < 2 and 0 or 1)
if rank == 1 then return end
local ok, why = pcall(function() return group:all_reduce(dev:tensor { rank }):item() end)
print("mine", ok, ok and why or why.message)
""", 4), 60)
check("a rank that leaves ends its own group", "mine\tfalse\trank 1 is gone" in results[0][1]
      and all("mine\ttrue\t5" in r[1] for r in results[2:]), results)
results = ended(start("group-mistakes", """
print(pcall(comm.split, comm, "red"))
print(pcall(comm.split, comm, 0, 1.5))
print(comm:split(nil), comm:split(false), comm:split(7).world)
local f = rille.compile(function(t) comm:split(0) return t * 2 end)
print(pcall(function() for i = 1, 3 do f(dev:tensor { 1 }):item() end end))
comm:close()
print(pcall(comm.split, comm, 0))
""", 1), 60)
said = results[0][1]
check("mistakes with groups are errors at once", results[0][0] == 0 and "color = red; a whole number" in said
      and "key = 1.5" in said and "nil\tnil\t1" in said and "communicator is closed" in said
      and re.search("false.*(traced|compiled function)", said), results)
processes.remove()
finish()
