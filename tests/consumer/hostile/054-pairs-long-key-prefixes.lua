-- pairs over keys of 60 KB that differ only in their last bytes, so that each comparison reads all of them
-- expect: error
local t, prefix = {}, ("k"):rep(60000)
for i = 1, 700 do t[prefix .. (i * 7919) % 1009] = true end
while true do for k in pairs(t) do break end end
