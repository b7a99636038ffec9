-- modules with path parts, absolute names, NULs, C modules and Rille's inner modules
-- expect: error
local rille = require "rille"
local found = {}
for _, n in ipairs { "../hostile", "/etc/passwd", "....etc.passwd", "..", ".", "", "a\0b", "libc", "libc.so.6", "socket", "lfs", "posix", "cjson",
  "ffi", "jit", "jit.util", "jit.opt", "jit.v", "jit.dump", "string.buffer", "table.new", "table.clear", "debug", "io", "os", "package",
  "rille.repl", "rille.host", "rille.native", "rille.primitives", "rille.core", "rille.internal", "rille.sys", "rille.http", "rille.agent",
  "_G", "thread.exdata", ("m."):rep(5000) } do
  local ok, m = pcall(require, n)
  if ok and m then found[#found + 1] = n end
end
print(table.concat(found, " "))
for _, n in ipairs(found) do
  if n:find("^ffi") or n:find("^jit") or n:find("buffer") or n:find("socket") or n:find("%.%.") then return "ESCAPED " .. n end
end
error("only harmless modules")
