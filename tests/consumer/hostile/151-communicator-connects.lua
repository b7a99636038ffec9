-- opens connections and listens by communicators: to this machine, to the metadata service, by name
-- expect: denied
local rille = require "rille"
for _, a in ipairs { "127.0.0.1:29571", "0.0.0.0:29572", "169.254.169.254:80", "localhost:22", "[::1]:29573", "example.org:80", "unix:/tmp/x:1", ":0", "\0:1" } do
  for rank = 0, 1 do
    local ok, c = pcall(rille.communicator, { rank = rank, world = 2, address = a, token = ("t"):rep(32), timeout = "300ms", device = "cpu" })
    if ok then return "ESCAPED " .. a end
    print(a, rank, tostring(c))
  end
end
rille.communicator { rank = 0, world = 2, address = "127.0.0.1:29574", timeout = "100ms", device = "cpu" }
