-- opens files everywhere, in workflow code and in steps, for reading and writing
-- expect: error
local rille = require "rille"
local paths = { "/etc/passwd", "/proc/self/mem", "/proc/self/maps", "/dev/zero", "/dev/mem", "../../../etc/passwd", "/tmp/rille-hostile-w",
  "/proc/self/root/etc/passwd", "/dev/fd/0", "/dev/stdin", "/proc/self/fd/1", "/dev/tty", "/etc/passwd\0.txt", "//etc//passwd", "/etc/./passwd",
  "/proc/thread-self/environ", "/dev/shm/rille-hostile", "~/.bashrc", "file:///etc/passwd", "/dev/tcp/127.0.0.1/80", "/proc/1/environ" }
local leaks = rille.step("open", function()
  local found = {}
  for _, p in ipairs(paths) do
    for _, mode in ipairs(p:find("hostile") and { "r", "w", "a+", "r+" } or { "r", "rb", "r\0w", "re", "rw" }) do
      local ok, f = pcall(io.open, p, mode)
      if ok and f then found[#found + 1] = p .. " " .. mode end
    end
  end
  return found
end)
if pcall(function() return assert(io.open("/etc/passwd")) end) then leaks[#leaks + 1] = "workflow code" end
if #leaks == 0 then error("nothing was opened") end
return "ESCAPED " .. table.concat(leaks, ", ")
