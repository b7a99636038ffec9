-- recursion through gsub callbacks: each level costs a big frame on the C stack, to overflow it
-- expect: error
local depth = 0
local function down(c)
  depth = depth + 1
  return (c:gsub(".", down))
end
down("a")
