-- Internal: the members of a cluster. Steps query the members' leases and running calls, and the cluster acts only on
-- the recorded results.
--
-- A member is { number =, box =, jobs = its current number of jobs, leaving = true once it gets no more work, over =
-- true once its lease is over, parting = true once its release has begun, spared = true: it is released only if no
-- other call runs on it after its last job }. A member stays in the list until it is released.
local native = require "rille.native"
local rille = require "rille"
local flow = native.flow

local members = {}

function members.staying(self)
  local out = {}
  for _, member in ipairs(self._members) do if not member.leaving then out[#out + 1] = member end end
  return out
end

-- Whether a script may continue after the error: not after a cancellation or a divergence.
function members.passable(err) return type(err) ~= "table" or err.kind ~= "cancelled" and err.kind ~= "divergence" end

-- Releases an instance. Returns { failed = error } if that fails; the scope and the reaper then try again.
function members.let_go(self, box)
  local ok, err = pcall(box.release, box)
  if ok then return {} end
  if type(err) ~= "table" or not members.passable(err) then error(err, 0) end
  rille.log(("%s: %s is not released: %s"):format(self.name, box.name, err.message))
  return { failed = err }
end

function members.part(self, member)
  member.parting = true
  local ok, gone = pcall(members.let_go, self, member.box)
  for i, other in ipairs(self._members) do
    if other == member then table.remove(self._members, i) break end
  end
  if not ok then error(gone, 0) end
  return gone
end

-- Starts the release of a member in a fiber that only the scope waits for.
function members.part_soon(self, member)
  member.parting = true
  rille.spawn(self.name .. " less[" .. member.number .. "]", function() members.part(self, member) end)
end

-- Releases all members in `list` in parallel; returns the first error, or nil.
function members.part_all(self, list)
  local parted = rille.map(self.name .. " less", list, { key = function(member) return member.number end },
    function(member) return members.part(self, member) end)
  for _, one in ipairs(parted) do if one.failed then return one.failed end end
end

-- Wakes the jobs that wait for a free instance.
function members.ring(self, why)
  local bells = self._bells
  self._bells = {}
  for _, bell in ipairs(bells) do bell:cancel(why or "an instance has joined") end
end

-- Leases that are over ------------------------------------------------------------------------------------------------
-- A lease can end independently of its cluster: by its ttl, by idle_after, by another command, while the run was
-- suspended.

-- Call inside a step. Returns the members whose lease is over, { { number =, why =, lived_s = }, .. }, or nil.
-- lived_s: how many seconds the instance lived; nil if idle_after may have ended it.
function members.over(self)
  local out
  for _, member in ipairs(members.staying(self)) do
    local now = flow.standing(member.box.id)
    if now.over then
      out = out or {}
      out[#out + 1] = { number = member.number, why = now.over, lived_s = now.lived_s }
    end
  end
  return out
end

-- Call inside a step. Returns the numbers of members without jobs on which the script runs calls or transfers, or
-- nil.
function members.calling(self)
  local out
  for _, member in ipairs(members.staying(self)) do
    if member.jobs == 0 and flow.standing(member.box.id).calls > 0 then
      out = out or {}
      out[#out + 1] = member.number
    end
  end
  return out
end

function members.set_of(list)
  local out = {}
  for _, number in ipairs(list or {}) do out[number] = true end
  return out
end

-- Call inside a step. Returns the seconds until the first member's ttl ends; nil if there are no members.
function members.shortest(self)
  local out
  for _, member in ipairs(members.staying(self)) do
    local left = flow.standing(member.box.id).left_s
    if not out or left < out then out = left end
  end
  return out
end

-- Retires the members in `gone`, the result of `over`: they get no more work and are released when idle.
function members.retire(self, gone)
  for _, one in ipairs(gone or {}) do
    for _, member in ipairs(self._members) do
      if member.number == one.number and not member.over then
        member.leaving, member.over = true, true
        rille.log(("%s: %s gets no more work: %s"):format(self.name, member.box.name, one.why))
        if member.jobs == 0 and not member.parting then members.part_soon(self, member) end
      end
    end
  end
end

-- Checks the members' leases before the cluster gives out work.
function members.check(self)
  members.retire(self, rille.step(self.name .. " members", function() return members.over(self) end))
end

return members
