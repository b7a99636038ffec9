-- runs, as child scripts, files that are not beside this one, and looks whether errors show their text
-- expect: error
local rille = require "rille"
local leaks = {}
for _, path in ipairs { "/etc/passwd", "../../../../../../../../etc/passwd", "/proc/self/environ", "/dev/stdin", "/dev/zero", "/proc/self/fd/0",
  "./../../../../../etc/hostname", "/proc/self/cwd/../../../etc/passwd", "/proc/self/root/etc/passwd", "128-child-run-path-traversal.lua\0/../../../etc/passwd" } do
  local ok, e = pcall(rille.run, path, {})
  local text = tostring(e)
  if ok or text:find("root:", 1, true) or text:find("PATH=", 1, true) then leaks[#leaks + 1] = path end
  print(path, text)
end
if #leaks == 0 then error("nothing was read") end
return "ESCAPED " .. table.concat(leaks, " ")
