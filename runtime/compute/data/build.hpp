// Builders of data sets: they turn sources (texts, tables, images) into a folder that rille.data reads: shards, and
// dataset.json, which is written last and says what the shards are and what they were made of. One table, in build.cpp,
// has a builder for each kind. The same sources and options give the same bytes, whatever the number of threads and
// however often the work was interrupted.
//
// build_dataset blocks; any thread. Errors: invalid (options; sources that are not what they should be: the message
// names file and line), state (the target contains something else), io, memory, quota.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compute/data/dataset.hpp"
#include "runtime/compute/data/pace.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/base/use.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::data {

// What a build is given besides its options. All but `memory` are used on the thread that called build_dataset.
struct BuildContext {
  Look look;
  std::shared_ptr<MemoryUse> memory;  // counts the memory of the build; may be null
  Room disk;
  std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)> progress;  // of the sources; may be empty

  void looks() const {
    if (look) look();
  }
  Result<> writes(std::size_t bytes) const { return disk ? disk(static_cast<std::int64_t>(bytes)) : success(); }
  Result<MemoryHeld> hold(std::size_t bytes) const {
    return MemoryHeld::take(memory, MemoryUse::Part::tensors, static_cast<std::int64_t>(bytes));
  }
  // `held` keeps what is granted. Any thread, if `held` is its own.
  Room room(std::vector<MemoryHeld>& held) const {
    return [this, &held](std::int64_t bytes) -> Result<> {
      RILLE_TRY(MemoryHeld one, hold(static_cast<std::size_t>(bytes)));
      held.push_back(std::move(one));
      return success();
    };
  }
};

struct BuildSource {
  std::string path;
  std::int64_t size_bytes = 0;
  std::string xxh3;
};

// What a builder works on: checked options and the files in the order of the sources.
struct BuildTask {
  std::string to;
  Value options;  // without `sources` and `to`; the defaults are not filled in
  std::vector<BuildSource> sources;
};

struct Builder {
  std::string_view kind;
  std::vector<std::string_view> extensions;  // of the sources that it takes unless another kind is named
  std::vector<std::string_view> options;     // besides `sources`, `to` and `kind`
  Result<Dataset> (*build)(const BuildTask& task, const BuildContext& context);
  bool lists_sources = false;  // the task has the paths as they were given, and the builder finds the files and hashes
};

const std::vector<Builder>& builders();

Result<Dataset> build_text(const BuildTask& task, const BuildContext& context);    // build_text.cpp
Result<Dataset> build_table(const BuildTask& task, const BuildContext& context);   // build_table.cpp
Result<Dataset> build_images(const BuildTask& task, const BuildContext& context);  // build_images.cpp

// options: { sources = { paths of files and folders }, to = folder, kind = of the table; "" or missing: by the sources'
// extensions, and what the kind knows }. A data set of the same sources and options that is complete is kept.
Result<Dataset> build_dataset(const Value& options, const BuildContext& context);

// For builders. begin_dataset names the data set (`plan` has its kind and its options with the defaults filled in) and
// looks into the target folder: `complete`: the data set is there already; else `from` is what an interrupted build has
// finished, or the plan. state: the folder contains something else. note_progress writes progress.json; invalid: more
// than shards_max shards, which the option `larger` can make larger. end_dataset writes dataset.json.
constexpr std::size_t shards_max = 10'000;  // progress.json lists all of them each time
struct Begun {
  bool complete = false;
  Dataset from;
};
Result<Begun> begin_dataset(const BuildTask& task, Dataset plan, const BuildContext& context);
Result<> note_progress(const BuildTask& task, const Dataset& so_far, const char* larger, const BuildContext& context);
Result<> end_dataset(const BuildTask& task, const Dataset& made, const BuildContext& context);

// Adds to an error what is kept.
Error with_kept(Error error, const Dataset& set);

// The error of a source that changed while it was read. Removes progress.json, because finished shards may have some of
// the old bytes and some of the new ones: no build goes on after them.
Error changed_source(const BuildTask& task, const std::string& path);

// The beginning of a message about a source: "'notes.txt' line 7".
std::string at_line(const std::string& path, std::int64_t line);

}  // namespace rille::data
