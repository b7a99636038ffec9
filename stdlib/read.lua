-- rille.read: a whole file as text.
local native = require "rille.native"

---Returns the contents of a file. Relative paths start at the working directory.
---@param path string the file
---@return string text its bytes
---@mark step-only
---@error io there is no such file, or it cannot be read; the hint names what is there
---@error state called in workflow code
---@error denied without a grant to read the file
---@example
--- local text = rille.step("notes", function() return rille.read("notes.txt") end)
local function read(path) return native.read_file(path) end

return read
