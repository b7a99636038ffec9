// Admission: which runners an agent obeys. Both rules are in D/fence.json (0600), so that they outlive the agent:
// - The token. The agent takes the token of the first hello for its directory and refuses every other one. The first
//   hello precedes the first call, so no program of a call can be first. Only the token's SHA-256 is kept.
// - The fence: the highest epoch (of the run) and generation (of the lease's machine) seen. A runner of an older epoch
//   may look, but changes nothing.
// A full disk does not keep a runner from its results: a hello counts at once, and is written by the next start() at
// the latest, which fails until it is. Loop thread only.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/base/value.hpp"

namespace rille::agent {

class Admission {
 public:
  static constexpr std::int64_t epoch_max = std::int64_t{1} << 40;  // also of generations

  explicit Admission(std::string directory) : path_(std::move(directory) + "/fence.json") {}
  // io, integrity: the file is damaged; it is left in place.
  Result<> load();

  // A runner's hello {token, epoch, generation}; returns its epoch. auth: not the token of this directory; state: an
  // older epoch; invalid: a number out of range. A refused hello changes nothing.
  Result<std::int64_t> admit(const Value& hello);
  // state: a newer runner has connected since.
  Result<> check(std::int64_t epoch) const;
  // Before a call starts. state: an older epoch or generation; io: the file could not be written.
  Result<> start(const std::string& call, std::int64_t epoch, std::int64_t generation);

 private:
  Result<> save();

  std::string path_, token_sha256_;
  std::int64_t epoch_ = 0, generation_ = 0;
  bool saved_ = true;
};

}  // namespace rille::agent
