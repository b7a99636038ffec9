-- loadfile and dofile on paths that lead out of the script's folder; a syntax error could show a file's text
-- expect: error
local rille = require "rille"
local dir = rille.script_directory or "."
local leaks = {}
for _, p in ipairs { "/etc/passwd", "../../../../../../../../../etc/passwd", dir .. "/../../../../../../../etc/passwd", dir .. "\0/../../etc/passwd",
  "./../hostile.c", "..", ".", "/", "", "/dev/zero", "/dev/random", "/proc/self/environ", "/proc/self/exe", "x/../../../../etc/passwd",
  dir .. "//..//..//CMakeLists.txt", "/proc/self/cwd/CMakeLists.txt", ("../"):rep(2000) .. "etc/passwd", ("a/"):rep(100000) } do
  for _, f in ipairs { loadfile, dofile } do
    local ok, v, m = pcall(f, p)
    local text = tostring(v) .. tostring(m)
    if ok and v or text:find("root:x", 1, true) or text:find("symbol near", 1, true) then leaks[#leaks + 1] = p end
  end
end
if #leaks == 0 then error("nothing was read") end
return "ESCAPED " .. table.concat(leaks, " ")
