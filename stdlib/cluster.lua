-- rille.cluster: several instances under one name, which gives jobs to free instances. The membership changes only at
-- recorded moments (a rent, a release, the end of a job), so that a resumed run gives every job to the same instance.
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

-- Rents one instance and calls the setup function for it. With `patient`, the error of a failing setup is returned
-- (nil, error); the machine is then released in this function, not by the scope, so that the time of the release is
-- recorded.
local function raise_one(self, number, patient)
  local box = rille.rent(self.name .. "-" .. number, self._options)
  if not self._setup then return box end
  local ok, err = xpcall(self._setup, flow.trace, box, number)
  if ok then return box end
  if not patient or not members.passable(err) then error(err, 0) end
  members.let_go(self, box)
  return nil, err
end

-- Kinds of errors that may pass: nothing is available now, or renting is not allowed now.
local passing = { capacity = true, quota = true, budget = true, network = true, timeout = true }

-- Adds a member, ordered by number. The member gets work at once, and stays even if other instances of the growth
-- fail.
local function join(self, number, box)
  flow.keep_lease(box.id, self._scope)  -- the lease outlives the fiber that rented it
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

-- Counts an expected instance that was rented or has failed; returns whether the cluster still wants the instance.
local function arrive(self)
  local key = self._unwanted > 0 and "_unwanted" or "_coming"
  self[key] = self[key] - 1
  if self._coming == 0 then members.ring(self, "no more instances are expected") end
  return key == "_coming"
end

-- Rents `count` more instances in parallel. With `tolerant`, instances that cannot be rented are skipped; with
-- `patient`, also instances whose setup fails. Returns the first error and whether a setup caused it. Members that
-- joined stay when another instance fails. Instances that do not join are released with the fiber that rented them.
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
  for _ = 1, awaited do arrive(self) end  -- counts the instances that were cancelled before their fiber began
  if not ok then error(made, 0) end
  for _, each in ipairs(made) do if each.failed then return each.failed, each.setup end end
end

-- Picks the members to release: idle ones before busy ones, newest first. A busy member finishes its job first.
-- Members on which the script itself runs a call (`calling`: recorded set of member numbers) come last, because the
-- end of such a call is unknown; an autoscaler keeps these members (`spares`).
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
---@field name string the cluster's name; its instances are NAME-1, NAME-2, ..
---@field count integer instances that get work
---@field busy integer instances that have work now
---@field waiting integer jobs of `map` that wait for an instance
---@field released boolean whether `release` has been called
local methods = {}

local function check_fn(verb, fn)
  if type(fn) ~= "function" then invalid(verb .. ": expected a function last, got " .. tostring(fn)) end
end

---Calls fn(box, item, index) for each item, on the next free instance; returns the results in the list's order.
---
---Instances that join meanwhile get work at once; an instance that leaves finishes its item first. The first error ends
---the whole map.
---@param name string the name of the map; fibers are named `name[1]`, `name[2]`
---@param list table the items
---@param options? Cluster.MapOptions items at a time, and the items' names
---@param fn fun(box: Instance, item: any, index: integer): any the body
---@return table results one per item
---@mark durable
---@async
---@error invalid the name, the list or the function is missing
---@error state the cluster was released before all items had started
---@error denied as `Instance:call`
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
---@field per_instance? integer items that an instance works on at a time, 1 by default
---@field key? string|function the field, or the function of item and index, that names an item instead of its position

---Calls fn(box, index) for every instance in parallel; returns the results in their order.
---@param name string the name of the call
---@param fn fun(box: Instance, index: integer): any the body
---@return table results one per instance
---@mark durable
---@async
---@error invalid the function is missing
---@error denied as `Instance:call`
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

---The instances that get work, in the order in which they were rented.
---@return table boxes a list of `Instance`
---@mark deterministic
function methods:boxes()
  local out = {}
  for i, member in ipairs(staying(self)) do out[i] = member.box end
  return out
end

---Brings the cluster to `count` instances: rents more in parallel, or releases some.
---
---Instances that another `resize` is renting count too: the last call decides the size. Each instance joins once it is
---set up. If a `setup` fails, members that joined stay, and the others are released. Idle instances are released first,
---newest first; a busy one finishes its job before it goes. Instances with a call or a transfer that is not a job of
---`map` or `each` go last, and releasing them ends that call.
---@param count integer how many, from 1 on
---@mark durable
---@async
---@error capacity no more instances are available; those that were rented stay
---@error budget more would exceed a budget
---@error invalid count is not a whole number from 1 on
---@error denied as `rille.rent`
---@error state the cluster is released
---@example
---gang:resize(4)
function methods:resize(count)
  whole(count, 1, "cluster:resize: count")
  local failed = flow.resize(self, count)
  if failed then error(failed, 0) end
end

---Releases all instances and ends its autoscalers. An instance that is still being rented is released when it is ready.
---@mark durable
---@async
---@error network a provider cannot be reached; the release is retried later
function methods:release()
  self._released = true
  for _, handle in ipairs(self._scalers) do handle:cancel("the cluster is released") end
  local all = self._members
  self._members = {}
  members.ring(self, "the cluster is released")
  local failed = members.part_all(self, all)
  if failed then error(failed, 0) end
end

-- Resizes for cluster:resize and the autoscaler: returns errors that may pass (nothing can be rented or released now)
-- instead of raising them. `calling`: { [number] = true } from a step of the autoscaler; these members stay. With
-- `calling`, the error of a setup is returned too, and marked as such.
function flow.resize(self, count, calling)
  if self._released then error(is_released(self), 0) end
  local have = #staying(self) + self._coming
  for i = #self._members, 1, -1 do               -- keep members that were about to be released
    local member = self._members[i]
    local may_stay = member.leaving and not member.over and not member.parting
    if have < count and may_stay then member.leaving, have = nil, have + 1 end
  end
  -- Also keep wanted instances that another resize is renting; cancel unwanted ones before releasing members.
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
---@field setup? fun(box: Instance, number: integer) called once for each instance before it gets work, also for
---instances that join later

---Rents several instances in parallel and groups them. They live until the scope that rented them ends.
---@param name string the cluster's name; the leases are NAME-1, NAME-2, ..
---@param options? rille.ClusterOptions how many, and the options of `rille.rent` for each
---@return Cluster cluster with all its instances ready
---@mark durable
---@async
---@nodiscard
---@error capacity fewer than `count` are available at present; then none is kept
---@error budget the run's budget does not cover them
---@error invalid an unknown option or a bad value
---@error denied as `rille.rent`
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
  rent.cluster = rent.cluster or name            -- the cluster's machines may connect to each other
  if setup ~= nil then check_fn("rille.cluster: setup", setup) end
  local self = setmetatable({ name = name, _options = rent, _setup = setup or false, _scope = 0, _members = {},
    _next = 1, _coming = 0, _unwanted = 0, _bells = {}, _scalers = {}, _scaling = 0, _waiting = 0,
    _released = false }, Cluster)
  rille.scope(name, function()                   -- if one instance cannot be rented, this scope releases the others
    self._scope = flow.scope_id()
    grow(self, count, false)
    return self:boxes()                          -- the returned instances move to the enclosing scope
  end)
  self._scope = flow.scope_id()
  return self
end

return cluster
