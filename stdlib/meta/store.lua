---@meta store
--- An object store: a bucket of S3, OSS, COS, OBS, Google or Azure, or what is compatible with S3, from `rille.store`.
--- Keys are relative to the store's address. The results of all methods are journaled, so that a resumed run does not
--- ask the store again. In a step's body they are not: they are a part of the step, and happen again with it.

---@class Store
---@field address string the bucket and the prefix of all keys, such as "s3://bucket/runs/"
local Store = {}

--- Writes an object. A file larger than 64 MiB is sent in parts, four at the same time; the object appears when all of
--- it is there.
---
--- With `if_absent`, a resumed run whose earlier process was killed after the write and before its record is refused by
--- its own object: read the object to see whose it is.
---@param key string its key; "a/b" is below "a/"
---@param data string|table the bytes, or `{ file = path }`
---@param options? Store.PutOptions conditions
---@return table written `bytes`, and the object's `version`
---@mark durable
---@async
---@error state with http_status 412: the condition does not hold; 404: there is no such bucket
---@error auth the keys are missing, wrong, expired, or may not do this
---@error config no region is known
---@error invalid a wrong key, or the store has no such condition
---@error io the file cannot be read
---@error integrity the file became shorter while it was sent
---@error network the store cannot be reached
---@error quota the store throttles for longer than Rille waits
---@error denied without a grant of the store's host (network), or to read the file
---@example
--- store:put("notes.txt", "learning rate 3e-4")
--- store:put("model.bin", { file = "out/model.bin" }, { if_absent = true })
function Store:put(key, data, options) end

---@class Store.PutOptions
---@field if_absent? boolean only if there is no object of that key; not on obs
---@field if_match? string only in place of this version; on s3, gs and az
---@field content_type? string the type of its bytes, such as "text/plain"
---@field sim? table for `rille simulate`: `duration`, `result`

--- Reads an object: its bytes, or into a file, which appears when all of it is there. A transfer that is cut off
--- goes on where it was.
---@param key string its key
---@param options? Store.GetOptions where to
---@return string|table data the bytes, at most 16 MiB; with `file` a table of `bytes` and `version`
---@mark durable
---@async
---@error state with http_status 404: there is no such object or bucket
---@error auth the keys are missing, wrong, expired, or may not do this
---@error config no region is known
---@error io the file cannot be written
---@error integrity the object changed while it was read
---@error quota larger than 16 MiB, without `file`
---@error network the store cannot be reached
---@error denied without a grant of the store's host (network), or to write the file
---@example
--- local notes = store:get("notes.txt")
--- store:get("model.bin", { file = "in/model.bin" })
function Store:get(key, options) end

---@class Store.GetOptions
---@field file? string the file to write; its missing folders are made
---@field sim? table for `rille simulate`: `duration`, `result`

--- Lists the objects whose keys begin with a prefix.
---@param prefix? string the beginning of the keys; all by default
---@param options? Store.ListOptions how far
---@return table rows a list that prints as a table, sorted by `key`, with `size`, `version` and `modified` (seconds
---since 1970); with `folders` also rows of `key` and `folder = true`
---@mark durable
---@async
---@error state with http_status 404: there is no such bucket
---@error auth the keys are missing, wrong, expired, or may not do this
---@error config no region is known
---@error quota there are more than `limit`
---@error integrity the store's answer cannot be right, or does not come to an end
---@error network the store cannot be reached
---@error denied without a grant of the store's host (network)
---@example
--- for _, row in ipairs(store:list("runs/", { folders = true })) do print(row.key, row.size) end
function Store:list(prefix, options) end

---@class Store.ListOptions
---@field folders? boolean what is below a further "/" becomes one row
---@field limit? number most rows, 10000 by default, at most 1000000: more are an error, as are more than 64 MB
---@field sim? table for `rille simulate`: `duration`, `result`

--- Tells whether there is an object of that key.
---@param key string its key
---@param options? table `sim`
---@return boolean exists false also for a prefix that is no object
---@mark durable
---@async
---@error state with http_status 404: there is no such bucket
---@error auth the keys are missing, wrong, expired, or may not do this
---@error config no region is known
---@error network the store cannot be reached
---@error denied without a grant of the store's host (network)
---@example
--- if not store:exists("model.bin") then rille.step("train", function() end) end
function Store:exists(key, options) end

--- Deletes an object; also succeeds if there is none.
---@param key string its key
---@param options? table `sim`
---@mark durable
---@async
---@error state with http_status 404: there is no such bucket
---@error auth the keys are missing, wrong, expired, or may not do this
---@error config no region is known
---@error network the store cannot be reached
---@error denied without a grant of the store's host (network)
---@example
--- store:delete("notes.txt")
function Store:delete(key, options) end
