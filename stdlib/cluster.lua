-- rille.cluster: several instances under one name, and work for whichever of them is free. What is known of the
-- members changes only at recorded moments (a rent, a release, the end of a job), so that a resumed run gives every
-- job to the instance that had it.
local native = require "rille.native"
local rille = require "rille"
local members = require "rille.cluster.members"
local work = require "rille.cluster.work"
local flow = native.flow
local staying = members.staying

local count_max = 1000

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

local function whole(value, low, what)
  if type(value) ~= "number" or value < low or value > count_max or value % 1 ~= 0 then
    invalid(("%s = %s: a whole number from %d to %d is needed"):format(what, tostring(value), low, count_max))
  end
  return value
end

-- Growing and shrinking -----------------------------------------------------------------------------------------------

-- With `patient`, gives nil and the error where its setup failed: its machine is released by then, here rather than by
-- the scope, since how long that takes must be in the record.
local function raise_one(self, number, patient)
  local box = rille.rent(self.name .. "-" .. number, self._options)
  if not self._setup then return box end
  local ok, err = xpcall(self._setup, flow.trace, box, number)
  if ok then return box end
  if not patient or not members.passable(err) then error(err, 0) end
  members.let_go(self, box)
  return nil, err
end

-- What may pass: there is nothing to rent at present, or it is not allowed to now.
local passing = { capacity = true, quota = true, budget = true, network = true, timeout = true }

-- From here on it is a member, whatever becomes of those that were rented with it. In the order of the numbers, and
-- with work at once.
local function join(self, number, box)
  flow.keep_lease(box.id, self._scope)  -- it outlives the fiber that rented it
  local at = #self._members + 1
  while at > 1 and self._members[at - 1].number > number do at = at - 1 end
  table.insert(self._members, at, { number = number, box = box, jobs = 0 })
  members.ring(self)
end

local function is_released(self)
  local _, err = pcall(rille.error, { kind = "state", message = ("cluster '%s' is released"):format(self.name),
    hint = "make another one" })
  return err
end

-- One that was to come has come, or will not: gives whether it is wanted.
local function arrive(self)
  local key = self._unwanted > 0 and "_unwanted" or "_coming"
  self[key] = self[key] - 1
  if self._coming == 0 then members.ring(self, "nobody else comes") end
  return key == "_coming"
end

-- Rents `count` more at the same time. With `tolerant` those that cannot be had are left out, with `patient` those as
-- well whose setup fails; gives their first error, and whether it was a setup's.
-- Who has joined stays when another one fails. What does not join is released with the fiber that rented it.
local function grow(self, count, tolerant, patient)
  local numbers = {}
  for i = 1, count do numbers[i] = self._next + i - 1 end
  self._next, self._coming = self._next + count, self._coming + count
  local awaited = count
  local function one(number)
    local ok, got, unready = pcall(raise_one, self, number, patient)
    local wanted = arrive(self)
    awaited = awaited - 1
    if ok and self._released then return { failed = is_released(self) } end
    if unready then return { failed = unready, setup = true } end
    if ok then
      if wanted then join(self, number, got) end
      return {}
    end
    if tolerant and type(got) == "table" and passing[got.kind] then return { failed = got } end
    error(got, 0)
  end
  local ok, made = pcall(rille.map, self.name, numbers, { key = function(number) return number end }, one)
  for _ = 1, awaited do arrive(self) end  -- those that were cancelled before they began
  if not ok then error(made, 0) end
  for _, each in ipairs(made) do if each.failed then return each.failed, each.setup end end
end

-- The newest first, and of those with work none before one that has none. Who has a job ends it first. Where the script
-- calls without a job (`calling`: by number, as recorded) nobody can tell when that ends: such an instance is the last
-- to go, and an autoscaler leaves it (`spares`).
local function shrink(self, count, calling, spares)
  local idle = {}
  for pass = 1, spares and 2 or 3 do
    for i = #self._members, 1, -1 do
      local member = self._members[i]
      local turn = member.jobs > 0 and 2 or calling[member.number] and 3 or 1
      if count > 0 and not member.leaving and pass == turn then
        member.leaving, member.spared, count = true, spares, count - 1
        if member.jobs == 0 then idle[#idle + 1] = member end
      end
    end
  end
  for _, member in ipairs(idle) do member.parting = true end
  return members.part_all(self, idle)
end

-- The object ----------------------------------------------------------------------------------------------------------

---@class Cluster
---@field name string its own; its instances are NAME-1, NAME-2, ..
---@field count integer instances that get work
---@field busy integer those among them that have some now
---@field waiting integer jobs of `map` that wait for an instance
---@field released boolean whether `release` has been called
local methods = {}

local function check_fn(verb, fn)
  if type(fn) ~= "function" then invalid(verb .. ": expected a function last, got " .. tostring(fn)) end
end

---Calls fn(box, item, index) for each item, on the next instance that is free; gives the results in the list's order.
---
---Instances that join meanwhile get work at once; those that leave end their item first. The first error ends it all.
---@param name string the name of the whole; fibers are named `name[1]`, `name[2]`
---@param list table the items
---@param options? Cluster.MapOptions how many at a time, and how items are named
---@param fn fun(box: Instance, item: any, index: integer): any the body
---@return table results one per item
---@mark durable
---@async
---@error invalid the name, the list or the function is missing
---@error state the cluster was released before all items had begun
---@example
---local sums = gang:map("sum", { 10, 20, 30 }, function(box, n)
---  return box:call("sum", { args = n }, function(n) return n * (n + 1) / 2 end)
---end)
function methods:map(name, list, options, fn)
  if fn == nil and type(options) == "function" then options, fn = nil, options end
  if type(name) ~= "string" then
    invalid("cluster:map: expected its name first, got " .. tostring(name),
      'cluster:map("name", list, function(box, item) ... end)')
  end
  if type(list) ~= "table" then invalid("cluster:map: expected a list, got " .. tostring(list)) end
  check_fn("cluster:map", fn)
  native.check_options(options, "cluster:map", { "per_instance", "key" })
  options = options or {}
  local jobs = {}
  for i, item in ipairs(list) do
    local label = i
    if type(options.key) == "function" then label = options.key(item, i)
    elseif options.key ~= nil then label = item[options.key] end
    jobs[i] = { label = label, run = function(box) return fn(box, item, i) end }
  end
  return work.run(self, name, jobs, whole(options.per_instance or 1, 1, "cluster:map: per_instance"))
end

---@class Cluster.MapOptions
---@field per_instance? integer items that one instance has at a time, 1 by default
---@field key? string|function the field, or the function of item and index, that names an item instead of its position

---Calls fn(box, index) for every instance at the same time; gives the results in their order.
---@param name string the name of the whole
---@param fn fun(box: Instance, index: integer): any the body
---@return table results one per instance
---@mark durable
---@async
---@error invalid the function is missing
---@example
---gang:each("versions", function(box) return box:exec("version", { argv = { "python3", "--version" } }) end)
function methods:each(name, fn)
  check_fn("cluster:each", fn)
  if not self._released then members.check(self) end
  local jobs = {}
  for i, member in ipairs(staying(self)) do
    jobs[i] = { label = i, only = member, run = function(box) return fn(box, i) end }
  end
  if #jobs == 0 then work.none_left(self, "each of its instances") end
  return work.run(self, name, jobs, math.huge)
end

---Its instances that get work, in the order in which they were rented.
---@return table boxes a list of `Instance`
---@mark deterministic
function methods:boxes()
  local out = {}
  for i, member in ipairs(staying(self)) do out[i] = member.box end
  return out
end

---Brings the cluster to so many instances: rents more at the same time, or releases some.
---
---Instances that another `resize` is renting count, too: the last one to be called says how many there will be.
---Each joins once it is set up. When a `setup` fails, those that have joined stay, and the others are released.
---Those that have no work go first, the newest of them before the others; one that works ends its job before it goes.
---The last to go are those where a call or a transfer runs that is no job of `map` or `each`: it ends with the lease.
---@param count integer how many, from 1 on
---@mark durable
---@async
---@error capacity there is nothing more to rent; what could be rented stays
---@error budget more would exceed a budget
---@error invalid no whole number, or less than 1
---@error state the cluster is released
---@example
---gang:resize(4)
function methods:resize(count)
  whole(count, 1, "cluster:resize: count")
  local failed = flow.resize(self, count)
  if failed then error(failed, 0) end
end

---Releases all its instances, and ends what scales it. One that is still being rented is released when it is there.
---@mark durable
---@async
---@error network a provider cannot be reached; the release goes on being tried
function methods:release()
  self._released = true
  for _, handle in ipairs(self._scalers) do handle:cancel("the cluster is released") end
  local all = self._members
  self._members = {}
  members.ring(self, "the cluster is released")
  local failed = members.part_all(self, all)
  if failed then error(failed, 0) end
end

-- For cluster:resize and the autoscaler: that something cannot be rented or released now is given back, not raised.
-- `calling`: what a step has recorded for the autoscaler, { [number] = true }; who is in it does not go. With it the
-- error of a setup is given back, too, and that it is one.
function flow.resize(self, count, calling)
  if self._released then error(is_released(self), 0) end
  local have = #staying(self) + self._coming
  for i = #self._members, 1, -1 do               -- who is still there is wanted again
    local member = self._members[i]
    local may_stay = member.leaving and not member.over and not member.parting
    if have < count and may_stay then member.leaving, have = nil, have + 1 end
  end
  -- So are those that another resize is renting; and of these none is kept before one that is there has to go.
  local again = math.min(self._unwanted, math.max(count - have, 0))
  local refused = math.min(self._coming, math.max(have - count, 0))
  self._unwanted, self._coming = self._unwanted - again + refused, self._coming + again - refused
  have = have + again - refused
  if have < count then return grow(self, count - have, true, calling ~= nil) end
  if have <= count then return end
  local spares = calling ~= nil
  if not spares then
    calling = members.set_of(rille.step(self.name .. " members", function() return members.calling(self) end))
  end
  return shrink(self, have - count, calling, spares)
end

local fields = {
  count = function(self) return #staying(self) end,
  busy = function(self)
    local n = 0
    for _, member in ipairs(staying(self)) do if member.jobs > 0 then n = n + 1 end end
    return n
  end,
  waiting = function(self) return self._waiting end,
  released = function(self) return self._released end,
}

local Cluster = {
  __tostring = function(self) return ("Cluster '%s' (%d instances)"):format(self.name, #staying(self)) end,
  __index = function(self, key)
    if methods[key] then return methods[key] end
    if fields[key] then return fields[key](self) end
    invalid("a cluster has no field or method '" .. tostring(key) .. "'",
      "it has: map, each, boxes, resize, release, name, count, busy, waiting, released")
  end,
}

---@class rille.ClusterOptions: rille.RentOptions
---@field count? integer how many instances, 1 by default
---@field setup? fun(box: Instance, number: integer) called once for each instance before it gets work, also for those
---that join later

---Rents several instances at the same time, as one thing. They live until the scope ends in which they were rented.
---@param name string the cluster's name; the leases are NAME-1, NAME-2, ..
---@param options? rille.ClusterOptions how many, and the options of `rille.rent` that hold for each
---@return Cluster cluster with all its instances ready
---@mark durable
---@async
---@nodiscard
---@error capacity not so many can be rented at present; then none is kept
---@error budget the run's budget does not cover them
---@error invalid an unknown option or a value that it cannot have
---@example
---local gang = rille.cluster("gang", { count = 4, gpu = "T4", ttl = "2h" })
local function cluster(name, options)
  if type(name) ~= "string" or name == "" then
    invalid("rille.cluster: expected its name first, got " .. tostring(name), 'rille.cluster("gang", { count = 4 })')
  end
  if options ~= nil and type(options) ~= "table" then
    invalid("rille.cluster: expected a table of options, got " .. tostring(options))
  end
  local rent = {}
  for key, value in pairs(options or {}) do rent[key] = value end
  local count = whole(rent.count or 1, 1, "rille.cluster: count")
  local setup = rent.setup
  rent.count, rent.setup = nil, nil
  rent.cluster = rent.cluster or name            -- they may talk to each other
  if setup ~= nil then check_fn("rille.cluster: setup", setup) end
  local self = setmetatable({ name = name, _options = rent, _setup = setup or false, _scope = 0, _members = {},
    _next = 1, _coming = 0, _unwanted = 0, _bells = {}, _scalers = {}, _scaling = 0, _waiting = 0,
    _released = false }, Cluster)
  rille.scope(name, function()                   -- when one cannot be had, this scope releases the others
    self._scope = flow.scope_id()
    grow(self, count, false)
    return self:boxes()                          -- they go on in the scope around it
  end)
  self._scope = flow.scope_id()
  return self
end

return cluster
