-- Internal: gives jobs to free members of a cluster.
local native = require "rille.native"
local rille = require "rille"
local members = require "rille.cluster.members"
local flow = native.flow

local moves_max = 3      -- how often one job may move to another instance
-- a failure this short before the end of the ttl counts as caused by the ttl, because clocks differ
local nearly_over_s = 60

local function free(self, job, per_instance)
  if job.only then return job.only end
  for _, member in ipairs(self._members) do
    if not member.leaving and member.jobs < per_instance then return member end
  end
end

-- Kinds of errors that would occur on any machine.
local own_fault = { invalid = true, budget = true, cancelled = true, divergence = true }

-- Returns why a failed job moves to another instance (its instance was lost or is over), or nil if it does not move.
-- Recorded as a step, in the job's fiber.
local function cut_off(self, job, err)
  if job.only or job.tries > moves_max or type(err) ~= "table" or own_fault[err.kind] then return nil end
  local box = job.member.box
  return rille.step(self.name .. " members", function()
    local now = flow.standing(box.id)
    return now.over or now.left_s < nearly_over_s and "its ttl has passed" or nil
  end)
end

local function begin(self, name, job)
  local member = job.member
  member.jobs, job.tries, job.cut = member.jobs + 1, job.tries + 1, nil
  job.handle = rille.spawn(name .. "[" .. tostring(job.label) .. "]", function()
    local ok, got = xpcall(job.run, flow.trace, member.box)
    if ok then return got end
    job.cut = cut_off(self, job, got)
    if not job.cut then error(got, 0) end
    rille.log(("%s: %s goes to another instance: %s"):format(self.name, tostring(job.label), got.message))
  end)
end

-- Ends a job. An instance that is to leave is released after its last job.
local function finish(self, job, soon)
  local member = job.member
  member.jobs = member.jobs - 1
  if not member.leaving or member.parting or member.jobs > 0 then return end
  if member.spared and not member.over then
    local calls = rille.step(self.name .. " members", function() return flow.standing(member.box.id).calls > 0 end)
    if calls and member.jobs == 0 then
      member.leaving, member.spared = nil, nil
      members.ring(self, "an instance stays")
    end
    if member.jobs > 0 or not member.leaving or member.parting then return end
  end
  if soon then return members.part_soon(self, member) end
  members.part(self, member)
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

local work = {}

function work.none_left(self, name)
  rille.error { kind = "state", message = ("cluster '%s' has no instance left for %s"):format(self.name, name),
    hint = self._released and "release the cluster after its work" or "their leases are over (ttl, idle_after): " ..
      'rent them for longer, say on_loss = "replace", or have rille.autoscale keep min = 1' }
end

-- Raises if the cluster has no instance that could take a job and expects none.
local function check_hope(self, name, running)
  if not self._released and (#running > 0 or #members.staying(self) > 0 or self._coming + self._scaling > 0) then
    return
  end
  work.none_left(self, name)
end

-- The queue of waiting jobs: interrupted jobs first, then the others in their order.
local function queue_of(self, jobs)
  local next_job, back = 1, {}
  return {
    first = function() return back[1] or jobs[next_job] end,
    take = function()
      self._waiting = self._waiting - 1
      if back[1] then table.remove(back, 1) else next_job = next_job + 1 end
    end,
    give_back = function(job)
      self._waiting = self._waiting + 1
      back[#back + 1] = job
    end,
    length = function() return #jobs - next_job + 1 + #back end,
  }
end

local function give_out(self, name, queue, running, per_instance)
  local job = queue.first()
  if job and not job.only and free(self, job, per_instance) then members.check(self) end
  while job do
    job.member = free(self, job, per_instance)
    if not job.member then return end
    begin(self, name, job)
    queue.take()
    running[#running + 1], job = job, queue.first()
  end
end

local function end_job(self, running, index, results, queue)
  local job = running[index]
  results[job.number] = job.handle:wait()
  table.remove(running, index)
  if job.cut then
    members.retire(self, { { number = job.member.number, why = job.cut } })
    queue.give_back(job)
  end
  finish(self, job, true)
end

-- Runs jobs { label =, run = function(box), only = the member that must run the job, or nil } and returns the results
-- in order. Only this function starts and ends jobs, at recorded moments.
function work.run(self, name, jobs, per_instance)
  return rille.scope(name, function()
    local results, running, queue = {}, {}, queue_of(self, jobs)
    for i, job in ipairs(jobs) do job.number, job.tries = i, 0 end
    rille.defer(function()                       -- if this function fails, the other jobs are cancelled
      self._waiting = self._waiting - queue.length()
      for _, job in ipairs(running) do finish(self, job, false) end
      members.ring(self)
    end)
    self._waiting = self._waiting + #jobs
    while true do
      give_out(self, name, queue, running, per_instance)
      if #running == 0 and not queue.first() then return results end
      check_hope(self, name, running)
      local first = wait_for_change(self, name, running, queue.first() ~= nil)
      if running[first] then
        end_job(self, running, first, results, queue)
        if not queue.first() then members.ring(self) end  -- another map may have jobs for the free instance
      end
    end
  end)
end

return work
