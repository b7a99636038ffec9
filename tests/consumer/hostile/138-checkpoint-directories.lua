-- writes, reads and looks for checkpoints outside of the home, also by the training loop
-- expect: error
local rille = require "rille"
local model, leaks = rille.nn.linear(2, 2), {}
local ok, home = pcall(function() return rille.home end)
for _, d in ipairs { "/tmp/rille-hostile-c", "../rille-hostile-c", "/etc", "/dev/shm/rille-hostile-c", (ok and home or "") .. "/../../../rille-hostile-c", "\0" } do
  if pcall(rille.checkpoint.save, { model }, { directory = d, step = 1 }) then leaks[#leaks + 1] = "save " .. d end
  if pcall(rille.checkpoint.begin, { model }, { directory = d, step = 2 ^ 53, keep = -1 }) then leaks[#leaks + 1] = "begin " .. d end
  if pcall(rille.checkpoint.exists, d) then leaks[#leaks + 1] = "exists " .. d end
  if pcall(rille.checkpoint.load, { model }, d) then leaks[#leaks + 1] = "load " .. d end
  if pcall(rille.data.save_tensors, d .. "/x", { a = model.weight }) then leaks[#leaks + 1] = "tensors " .. d end
  if pcall(rille.train, { update = function(x) return x:sum() end, data = { next = function() return model.weight end }, steps = 1,
    checkpoint = { state = { model }, directory = d } }) then leaks[#leaks + 1] = "train " .. d end
end
if #leaks == 0 then error("nothing was written") end
return "ESCAPED " .. table.concat(leaks, ", ")
