-- an empty-match gmatch and a frontier over many megabytes, each step cheap, the sum endless
-- expect: timeout
local s = (" a"):rep(10000000)
while true do
  for _ in s:gmatch("%f[%a]()") do end
  for _ in s:gmatch("()") do end
end
