-- strings that differ only where a sampled hash does not look: interning becomes a walk of long chains
-- expect: error
local kept, n = {}, 0
local head, tail = ("a"):rep(40), ("z"):rep(40)
for i = 1, 1e9 do
  n = n + 1
  kept[n] = head .. ("%08x"):format(i) .. tail
end
