---@meta volume
--- A volume: a disk that outlives machines and runs, from `rille.volume`. Its fields are read when they are accessed.

---@class Volume
---@field name string its name, unique in the home
---@field id string its lease's id in the journal
---@field provider string the provider's name
---@field region string its region
---@field kind string the provider's kind of disk
---@field state string "creating", "ready", "attached", "deleting" or "deleted"
---@field volume string the provider's id for it
---@field keep boolean false: it ends with its scope
---@field shared boolean whether several machines may have it at a time
---@field size number bytes
---@field spent number dollars until now
---@field price? number dollars per hour; nil if it is not known in dollars
---@field attached_to? string the name of an instance that has it; nil if none has
local Volume = {}

--- Deletes the volume with its data. A volume that is deleted already stays so.
---@mark durable
---@async
---@error state an instance has it (`volume_in_use`), or the provider did not delete it
---@error denied without a grant of its provider
---@example
--- vol:delete()
function Volume:delete() end

--- Returns the fields as a table.
---@return table facts its fields
---@mark durable
---@nodiscard
---@example
--- print(vol:describe().state)
function Volume:describe() end
