// What an address in a store means for staging: one object, or the objects below a prefix or of a pattern, each with
// its place below a folder. Keys come from outside, so a key that would leave the folder, or stand where another key
// needs a folder, is refused before anything is fetched. Pure functions, but for find_objects; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/use.hpp"
#include "runtime/core/store/objects/object_store.hpp"

namespace rille::transfer {

struct PlannedFile {
  PlannedFile() = default;
  std::string key;
  std::string path;  // below the folder; "": the object is staged alone
  std::int64_t size_bytes = -1;
  std::string version;
};

// In a pattern "*" stands for any text without "/", "?" for one character but "/", and "**" for any text; "**/" also
// for nothing.
bool is_pattern(std::string_view key);
bool matches(std::string_view pattern, std::string_view key);
// The text before the first wildcard: all keys that match begin with it.
std::string_view literal_prefix(std::string_view pattern);

// Whether the key stands for a folder itself, as browsers of stores make it: it has no bytes and ends in "/".
bool is_folder_mark(const objects::ObjectInfo& info);
// Whether a key is a path below a folder: "a/b", but neither "/a", "a//b" nor "../a".
bool is_path_below(std::string_view key);

// Gives each file its path: its key without the first `cut` bytes. `root`: the store's address, for messages. Error
// `invalid` names a key that cannot be a file below a folder, or two keys that cannot both be.
Result<> place_files(std::vector<PlannedFile>& files, std::size_t cut, const std::string& root);

struct FoundObjects {
  FoundObjects() = default;
  bool folder = false;      // else there is one file, whose path is ""
  bool also_below = false;  // of one object: its key is also the prefix of others; told if it was asked
  std::vector<PlannedFile> files;
  std::vector<MemoryHeld> held;  // counts the files
};

// The objects that an address means. A key that ends in "/", or none: all below it. Else the object of exactly that
// key, else the objects below the key as a prefix, or those that match it as a pattern. Errors: those of the store;
// `state`, http_status 404: there is none; `invalid` as above; `quota`, code limit: there are more than a million;
// `memory`. `memory` counts the list; may be null. look_below: whether also_below is to be found out.
Async<FoundObjects> find_objects(objects::ObjectStore& store, std::string key, bool look_below,
                                 std::shared_ptr<MemoryUse> memory, CancelToken token);

}  // namespace rille::transfer
