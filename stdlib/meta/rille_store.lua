---@meta rille
--- Object stores. Part of the page of `rille.lua`.

---@class rille
local rille = {}

--- An object store, by its address: `s3://BUCKET/PREFIX`, also `oss`, `cos`, `obs` and `gs`, or
--- `az://ACCOUNT/CONTAINER/PREFIX`. The keys are those that the cloud's own tools would use. Nothing is asked yet.
---
--- `?endpoint=URL` at the end names a server that is compatible with S3, OSS, COS or OBS; `?region=NAME` the region.
---@param address string the bucket, and the prefix of all keys
---@return Store store its methods put, get, list and delete objects
---@mark deterministic
---@error invalid this is no address of a store
---@example
--- local store = rille.store("s3://my-bucket/runs")
--- print(store.address)
function rille.store(address) end
