-- Internal: who belongs to a cluster, who leaves it, and whose lease is over. What a machine's lease says, and what
-- runs there, is asked in the bodies of steps only, and the step's recorded result is acted upon.
--
-- A member is { number =, box =, jobs = how many it works on, leaving = true once it gets no more work, over = true
-- once its lease is over, parting = true once its release has begun, spared = true: it leaves only if, after its last
-- job, nothing else runs there }. It stays in the list until it has been released.
local native = require "rille.native"
local rille = require "rille"
local flow = native.flow

local members = {}

function members.staying(self)
  local out = {}
  for _, member in ipairs(self._members) do if not member.leaving then out[#out + 1] = member end end
  return out
end

-- Whether the script may go on after this error.
function members.passable(err) return type(err) ~= "table" or err.kind ~= "cancelled" and err.kind ~= "divergence" end

-- Gives { failed = error } when it could not be released: its scope, and the reaper, try again.
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

-- Nobody waits for it but the scope.
function members.part_soon(self, member)
  member.parting = true
  rille.spawn(self.name .. " less[" .. member.number .. "]", function() members.part(self, member) end)
end

-- Gives the first error.
function members.part_all(self, list)
  local parted = rille.map(self.name .. " less", list, { key = function(member) return member.number end },
    function(member) return members.part(self, member) end)
  for _, one in ipairs(parted) do if one.failed then return one.failed end end
end

-- Those who wait for a free instance look again.
function members.ring(self, why)
  local bells = self._bells
  self._bells = {}
  for _, bell in ipairs(bells) do bell:cancel(why or "an instance has joined") end
end

-- Leases that are over ------------------------------------------------------------------------------------------------
-- A lease ends without its cluster: by its ttl, by idle_after, by another command, while the run was suspended.

-- In a step: who that is, { { number =, why =, lived_s = }, .. }, or nil. lived_s: since it was live, where it has
-- ended, and has no idle_after that may have done it.
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

-- In a step: the numbers of those without a job on which the script calls all the same, or moves files; or nil.
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

-- In a step: how many seconds the first of them has until its ttl has passed; nil where there is none.
function members.shortest(self)
  local out
  for _, member in ipairs(members.staying(self)) do
    local left = flow.standing(member.box.id).left_s
    if not out or left < out then out = left end
  end
  return out
end

-- They get no more work, and go once they have none. Takes what `over` gave.
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

-- Before work is given.
function members.check(self)
  members.retire(self, rille.step(self.name .. " members", function() return members.over(self) end))
end

return members
