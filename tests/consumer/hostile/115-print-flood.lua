-- prints megabytes without end: the run's log on disk and the host's output grow
-- expect: timeout
local s = ("x"):rep(4000000)
while true do print(s, s) end
