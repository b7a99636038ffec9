// dataset.json: the description of a folder of shards that a builder made (build.hpp). It is written after all shards,
// so a folder that has it is complete. While a build goes on, the folder has progress.json instead, of the same form,
// which says what is finished and where to go on.
//
// Errors: io, integrity (the file or a shard is damaged: the message names it), state (the build is not finished, or
// the data set is of another kind). The files may come from strangers: names of shards stay inside the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/result.hpp"
#include "runtime/core/base/use.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/store/hash.hpp"

namespace rille::data {

struct Shard {
  std::string path;  // inside the folder: "train/000000.bin"
  std::string part;  // "train" or "validation"
  store::Fingerprint print;
  std::int64_t count = 0;  // tokens or rows
};

struct Dataset {
  std::string kind;      // of the builder
  std::string identity;  // a hash of the kind, the options and the sources' bytes
  Value options;
  Value sources;  // [{ path, size_bytes, xxh3 }]
  std::vector<Shard> shards;
  Value facts;                     // what else the kind has to say: tokens, vocabulary, columns ..
  int kept = 0;                    // shards that were there before this build; not in the file
  std::vector<MemoryHeld> held{};  // counts its memory; not in the file

  Value to_value() const;
};

inline constexpr const char* dataset_name = "dataset.json";
inline constexpr const char* progress_name = "progress.json";

// Reads `name` in the folder. nullopt: there is no such file. `room` is asked for the parsed file's memory.
Result<std::optional<Dataset>> read_dataset(const std::string& folder, const char* name = dataset_name,
                                            const Room& room = {});
// `disk` is asked for the size of the file before it is written. invalid: it would be too large to be read.
Result<> write_dataset(const std::string& folder, const char* name, const Dataset& dataset, const Room& disk = {});

// integrity: a shard is missing or has another size.
Result<> check_shards(const std::string& folder, const Dataset& dataset);

// For readers: the data set in the folder, which must be of that kind, with its shards checked. nullopt: the folder has
// no description, or the path is no folder. state: the build is not finished, or it made another kind of data.
Result<std::optional<Dataset>> open_dataset(const std::string& folder, const std::string& kind, const Room& room = {});

}  // namespace rille::data
