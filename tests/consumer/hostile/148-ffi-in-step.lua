-- the manual says that ffi works in steps: requires it there and calls the C library
-- expect: error
local rille = require "rille"
return rille.step("ffi", function()
  local ffi = require "ffi"
  ffi.cdef "int system(const char*); int getpid(void);"
  ffi.C.system("touch /tmp/rille-hostile-ffi")
  return "ESCAPED " .. ffi.C.getpid()
end)
