-- rille.write: a text as a whole file.
local native = require "rille.native"

---Writes a text to a file, whole or not at all: a file that exists is replaced once the new one is on the disk.
---@param path string the file; its folder must exist
---@param text string its new contents
---@mark step-only
---@error io the file cannot be written
---@error state called in workflow code
---@error denied without a grant to write the file
---@example
--- rille.step("save", function() rille.write("result.txt", "done\n") end)
local function write(path, text) return native.write_file(path, text) end

return write
