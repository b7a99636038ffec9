// Staging: what one box:stage moves to the lease's machine, and how far it is. The instance fetches what it can reach
// by itself; this machine fetches the rest and passes it on. What is done is remembered per machine, so that a broken
// channel repeats nothing and the lease's next machine gets everything. Private to runtime/workflow/engine; loop thread
// only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/store/objects/url.hpp"
#include "runtime/workflow/agent/client.hpp"
#include "runtime/workflow/engine/stage_choices.hpp"
#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/transfer/stage_plan.hpp"

namespace rille::engine {

struct Staging {
  Staging() = default;
  std::string lease, from, to;
  StageChoices choices;
  bool simulated = false;

  std::string target;  // on the machine: the file, or the folder of the files
  // A file or folder of this machine, sent as a whole. "": `files` are moved, one by one.
  std::string tree;
  bool folder = false;
  std::vector<transfer::PlannedFile> files;
  std::vector<MemoryHeld> held;    // counts the files
  std::vector<std::string> local;  // of each file: its copy on this machine; "": the instance fetches it
  objects::ObjectUrl url;
  std::unique_ptr<objects::ObjectStore> store;  // null: `from` is an http(s) address
  std::string why_here;                         // why this machine fetches; "": the instance does
  bool told = false;                            // a run event has said so

  // How far it is, on the machine of generation `done_on`.
  std::int64_t generation = 0, done_on = -1;  // generation: of the machine that is worked with
  std::optional<lease::Lease> leased;         // as of the begin of the moving to that machine
  std::vector<bool> done;
  std::size_t next = 0;
  std::int64_t done_files = 0, done_bytes = 0, total_bytes = -1, began_ns = 0;
  std::string version;  // of a single file

  bool web() const { return !store; }
  std::string path_of(std::size_t i) const { return folder ? target + "/" + files[i].path : target; }
  // Names the file's source in the instance's notes and cache.
  std::string key_of(std::size_t i) const;
  std::string unpack_folder() const;  // holds the archive on the machine while it is unpacked
  void begin();                       // before the files are moved, on any machine
};

// What a coroutine returns that finds its run gone.
inline Error run_gone() { return make_error(ErrorKind::cancelled, "the run has ended"); }

// "data/" -> "data"; "" and "./" -> ".".
std::string folder_named(const std::string& to);

}  // namespace rille::engine
