// Checkpoints that several ranks write together, each its share to its own machine (stdlib/tools/shares.lua): what the
// event "checkpoint" of such a rank says in `share`, { training, rank, world, directory, manifest }, and where each
// file of the whole is. The machines' words: they are checked here, and each path is used on the machine that named it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/workflow/agent/client.hpp"
#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/transfer/latest_file.hpp"

namespace rille::engine {

// The machine that has a file, and the file's path in its work directory.
struct HeldFile {
  std::shared_ptr<agent::AgentClient> agent;
  std::string path;
};

// A folder that is fetched, and the name under which its machine holds it meanwhile.
struct HeldFolder {
  std::shared_ptr<agent::AgentClient> agent;
  std::string folder, held;
};

// Lets the machines hold the folders, all at once: a training may remove them soon.
Async<> hold_all(Loop& loop, std::shared_ptr<std::vector<HeldFolder>> folders, std::string name, CancelToken token);
Async<> let_go(std::shared_ptr<std::vector<HeldFolder>> folders, CancelToken token);

struct Calls::Holdings {
  // By rank; of a checkpoint without shares one.
  std::shared_ptr<std::vector<HeldFolder>> folders = std::make_shared<std::vector<HeldFolder>>();
  std::vector<transfer::StoredFile> files;  // the manifest last
  std::map<std::string, HeldFile> places;   // by the file's name
};

// Whether another attempt may keep the checkpoint, or a later one.
inline bool may_be_kept_later(const Error& e) {
  return e.kind == ErrorKind::network || e.kind == ErrorKind::timeout ||
         (e.kind == ErrorKind::quota && e.retryable);  // throttled, not over a limit
}

inline bool is_share(const Value& published) { return !published["share"].is_null(); }
// A share of another rank than 0, which alone tells of whole checkpoints.
inline bool is_share_of_another(const Value& published) {
  return is_share(published) && published["share"].integer("rank") != 0;
}

}  // namespace rille::engine
