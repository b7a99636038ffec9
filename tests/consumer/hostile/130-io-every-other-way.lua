-- lines, input, output, tmpfile, popen, read, the standard streams and their metatable
-- expect: error
local rille = require "rille"
local leaks = rille.step("io", function()
  local found = {}
  local function try(name, f, ...) local ok, v = pcall(f, ...) if ok and v ~= nil then found[#found + 1] = name end end
  try("lines", function() for l in io.lines("/etc/passwd") do return l end end)
  try("input", function() return io.input("/etc/passwd") end)
  try("output", function() return io.output("/tmp/rille-hostile-o") end)
  try("tmpfile", function() return io.tmpfile() end)
  try("popen", function() return io.popen("id") end)
  try("stdin", function() return io.stdin:read(0) end)
  try("stdout", function() return io.stdout:write("from the script\n") end)
  try("stderr", function() return io.stderr:setvbuf("no") end)
  try("write", function() return io.write("x") end)
  try("meta", function() return getmetatable(io.stdout).__index.lines end)
  try("rawget", function() return rawget(io, "open")("/etc/passwd") end)
  try("lines nil", function() return io.lines()() end)
  return found
end)
if #leaks == 0 then error("nothing was reached") end
return "ESCAPED " .. table.concat(leaks, ", ")
