-- rille.cluster: several instances under one name, and work for whichever of them is free. What is known of the
-- members changes only at recorded moments (a rent, a release, the end of a job), so that a resumed run gives every
-- job to the instance that had it.
local native = require "rille.native"
local rille = require "rille"
local flow = native.flow

local count_max = 1000

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

local function whole(value, low, what)
  if type(value) ~= "number" or value < low or value > count_max or value % 1 ~= 0 then
    invalid(("%s = %s: a whole number from %d to %d is needed"):format(what, tostring(value), low, count_max))
  end
  return value
end

-- Members -------------------------------------------------------------------------------------------------------------
-- A member is { number =, box =, jobs = how many it works on, leaving = true once it gets no more work, parting = true
-- once its release has begun }. It stays in the list until it has been released.

local function staying(self)
  local out = {}
  for _, member in ipairs(self._members) do if not member.leaving then out[#out + 1] = member end end
  return out
end

-- Gives { failed = error } when it could not be released: its scope, and the reaper, try again.
local function part(self, member)
  member.parting = true
  local ok, err = pcall(member.box.release, member.box)
  for i, other in ipairs(self._members) do
    if other == member then table.remove(self._members, i) break end
  end
  if ok then return {} end
  if type(err) ~= "table" or err.kind == "cancelled" or err.kind == "divergence" then error(err, 0) end
  rille.log(("%s: %s is not released: %s"):format(self.name, member.box.name, err.message))
  return { failed = err }
end

-- Gives the first error.
local function part_all(self, members)
  local parted = rille.map(self.name .. " less", members, { key = function(member) return member.number end },
    function(member) return part(self, member) end)
  for _, one in ipairs(parted) do if one.failed then return one.failed end end
end

-- Those who wait for a free instance look again.
local function ring(self)
  local bells = self._bells
  self._bells = {}
  for _, bell in ipairs(bells) do bell:cancel("an instance has joined") end
end

local function raise_one(self, number)
  local box = rille.rent(self.name .. "-" .. number, self._options)
  if self._setup then self._setup(box, number) end
  return box
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
  ring(self)
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
  return key == "_coming"
end

-- Rents `count` more at the same time. With `tolerant` those that cannot be had are left out; gives their first error.
-- Who has joined stays when another one fails. What does not join is released with the fiber that rented it.
local function grow(self, count, tolerant)
  local numbers = {}
  for i = 1, count do numbers[i] = self._next + i - 1 end
  self._next, self._coming = self._next + count, self._coming + count
  local awaited = count
  local function one(number)
    local ok, got = pcall(raise_one, self, number)
    local wanted = arrive(self)
    awaited = awaited - 1
    if ok and self._released then return { failed = is_released(self) } end
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
  for _, each in ipairs(made) do if each.failed then return each.failed end end
end

-- The newest first, and of those that work none before one that does not. Who works ends its job first.
local function shrink(self, count)
  local idle = {}
  for pass = 1, 2 do
    for i = #self._members, 1, -1 do
      local member = self._members[i]
      if count > 0 and not member.leaving and (pass == 2 or member.jobs == 0) then
        member.leaving, count = true, count - 1
        if member.jobs == 0 then idle[#idle + 1] = member end
      end
    end
  end
  for _, member in ipairs(idle) do member.parting = true end
  return part_all(self, idle)
end

-- Work ----------------------------------------------------------------------------------------------------------------

local function free(self, job, per_instance)
  if job.member then return job.member end
  for _, member in ipairs(self._members) do
    if not member.leaving and member.jobs < per_instance then return member end
  end
end

local function begin(self, name, job)
  local member = job.member
  member.jobs = member.jobs + 1
  job.handle = rille.spawn(name .. "[" .. tostring(job.label) .. "]", function() return job.run(member.box) end)
end

-- After its last job, an instance that is no longer wanted goes.
local function finish(self, job, soon)
  local member = job.member
  member.jobs = member.jobs - 1
  if not member.leaving or member.parting or member.jobs > 0 then return end
  member.parting = true
  if not soon then return part(self, member) end
  rille.spawn(self.name .. " less[" .. member.number .. "]", function() part(self, member) end)
end

local function wait_for_change(self, name, running, waits)
  local handles = {}
  for i, job in ipairs(running) do handles[i] = job.handle end
  local bell
  if waits then
    bell = rille.spawn(name .. " waits", flow.rest)
    self._bells[#self._bells + 1] = bell
    handles[#handles + 1] = bell
  end
  local first = flow.first_ended(handles)
  if bell then
    for i, other in ipairs(self._bells) do if other == bell then table.remove(self._bells, i) break end end
    bell:cancel("no longer needed")
  end
  return first
end

-- Runs jobs { label =, run = function(box), member = one that must do it, or nil } and gives their results in order.
-- Only here do jobs begin and end: at moments that are in the record.
local function work(self, name, jobs, per_instance)
  return rille.scope(name, function()
    local results, running, next_job = {}, {}, 1
    rille.defer(function()                       -- when one has failed, the others have been cancelled
      self._waiting = self._waiting - (#jobs - next_job + 1)
      for _, job in ipairs(running) do finish(self, job, false) end
      ring(self)
    end)
    self._waiting = self._waiting + #jobs
    while true do
      while next_job <= #jobs do
        local job = jobs[next_job]
        job.number, job.member = next_job, free(self, job, per_instance)
        if not job.member then break end
        begin(self, name, job)
        running[#running + 1], next_job, self._waiting = job, next_job + 1, self._waiting - 1
      end
      if #running == 0 and next_job > #jobs then return results end
      if #self._members == 0 then
        rille.error { kind = "state", message = ("cluster '%s' has no instance left for %s"):format(self.name, name),
          hint = "release the cluster after its work, or keep at least one: min = 1" }
      end
      local first = running[wait_for_change(self, name, running, next_job <= #jobs)]
      if first then
        results[first.number] = first.handle:wait()
        for i, job in ipairs(running) do if job == first then table.remove(running, i) break end end
        finish(self, first, true)
        if next_job > #jobs then ring(self) end  -- another map may have jobs for it
      end
    end
  end)
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
  return work(self, name, jobs, whole(options.per_instance or 1, 1, "cluster:map: per_instance"))
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
  local jobs = {}
  for i, member in ipairs(staying(self)) do
    jobs[i] = { label = i, member = member, run = function(box) return fn(box, i) end }
  end
  return work(self, name, jobs, math.huge)
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
  local members = self._members
  self._members = {}
  local failed = part_all(self, members)
  if failed then error(failed, 0) end
end

-- For cluster:resize and the autoscaler: that something cannot be rented or released now is given back, not raised.
function flow.resize(self, count)
  if self._released then error(is_released(self), 0) end
  local have = #staying(self) + self._coming
  for i = #self._members, 1, -1 do               -- who is still there is wanted again
    local member = self._members[i]
    if have < count and member.leaving and not member.parting then member.leaving, have = nil, have + 1 end
  end
  -- So are those that another resize is renting; and of these none is kept before one that is there has to go.
  local again = math.min(self._unwanted, math.max(count - have, 0))
  local refused = math.min(self._coming, math.max(have - count, 0))
  self._unwanted, self._coming = self._unwanted - again + refused, self._coming + again - refused
  have = have + again - refused
  if have < count then return grow(self, count - have, true) end
  if have > count then return shrink(self, have - count) end
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
  if setup ~= nil then check_fn("rille.cluster: setup", setup) end
  local self = setmetatable({ name = name, _options = rent, _setup = setup or false, _scope = 0, _members = {},
    _next = 1, _coming = 0, _unwanted = 0, _bells = {}, _scalers = {}, _waiting = 0, _released = false }, Cluster)
  rille.scope(name, function()                   -- when one cannot be had, this scope releases the others
    self._scope = flow.scope_id()
    grow(self, count, false)
    return self:boxes()                          -- they go on in the scope around it
  end)
  self._scope = flow.scope_id()
  return self
end

return cluster
