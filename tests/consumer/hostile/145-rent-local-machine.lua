-- rents this machine, and every other provider, and runs programs there
-- expect: denied
local rille = require "rille"
for _, p in ipairs { "local", "sim", "ssh", "remote", "slurm", "kubernetes", "aws", "vast", "runpod", "azure", "gcp", "", "../x", "LOCAL", "local " } do
  for _, rent in ipairs { rille.rent, rille.try_rent } do
    local ok, box = pcall(rent, "box", { provider = p, ttl = "1h", unguarded = true })
    if ok and box then pcall(box.exec, box, "x", { argv = { "touch", "/tmp/rille-hostile-rent" } }) return "ESCAPED " .. p end
  end
end
pcall(rille.rent, "any", { gpu = "any" })
pcall(rille.rent, "cpu", { gpu = "cpu", providers = { "local" } })
rille.rent("box", { provider = "local" })
