-- compiles and launches C++ in the process: from text, from files, with includes and options for the compiler
-- expect: denied
local rille = require "rille"
local dev = rille.device("cpu")
local source = "__global__ void k(float* x) { x[0] = 1; }"
for _, o in ipairs { {}, { options = { "-fplugin=/tmp/x.so", "-o", "/tmp/rille-hostile-k" } }, { defines = { X = "1\n#include </etc/passwd>" } }, { name = "system" },
  { options = { "-fmodules-ts", "-fmodule-mapper=|/usr/bin/touch /tmp/rille-hostile-k" } }, { options = { "-fuse-ld=gold" } } } do
  local ok, k = pcall(dev.kernel, dev, source, o)
  if ok then return "ESCAPED" end
end
pcall(dev.kernel, dev, '#include "/etc/passwd"\n' .. source)
pcall(dev.kernel, dev, { file = "/etc/passwd" })
pcall(dev.kernel_file, dev, "../../../etc/passwd")
dev:kernel(source)
