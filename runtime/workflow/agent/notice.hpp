// NoticeSource: a source of preemption notices on the instance. One implementation reads a file that `rille agent
// notice` or another program writes; the other asks the cloud's metadata service that machine.json names. The runner,
// not the agent, handles notices from the provider's API (Machine::notice_wall_us). Loop thread only; look() is called
// once per tick of the agent and must return quickly.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/core/base/notice_spec.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::agent {

class NoticeSource {
 public:
  virtual ~NoticeSource() = default;
  // When the machine will be taken away, in microseconds of wall time; nullopt: no notice.
  virtual Async<std::optional<std::int64_t>> look(CancelToken token) = 0;
};

// Reads notices from D/notice.json: {"deadline_wall_us": ..}. A file that cannot be read counts as no notice.
std::unique_ptr<NoticeSource> notice_file(std::string directory);

// Asks a metadata service every five seconds in the background. Returns null if the spec names no service.
std::unique_ptr<NoticeSource> notice_of_metadata(Loop& loop, NoticeSpec spec);

}  // namespace rille::agent
