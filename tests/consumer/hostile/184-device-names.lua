-- devices that are not there, by names that are paths, formats and huge
-- expect: any
local rille = require "rille"
for _, n in ipairs { "cuda", "cuda:0", "cuda:-1", "cuda:99999999999", "cuda:../../x", "cuda:GPU-" .. ("x"):rep(1000000), "CPU", "cpu:1", "", "\0", "cpu\0x",
  "/tmp/librille_cuda.so", "cuda:MIG-%s%n", 0, {}, true } do
  print(pcall(rille.device, n))
end
for i = 1, 1000 do rille.devices() pcall(function() return rille.device("cpu"):telemetry() end) end
