// NoticeSource: a source of preemption notices on the instance. One implementation reads a file that `rille agent
// notice` or another watcher writes, the other a cloud's metadata service, which machine.json names. Notices from the
// provider's API (Machine::notice_wall_us) are handled by the runner. Loop thread only; look() is called once per tick
// of the agent and must not delay it.
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
  // When the machine will be taken away, in wall time; nothing: no notice.
  virtual Async<std::optional<std::int64_t>> look(CancelToken token) = 0;
};

// D/notice.json: {"deadline_wall_us": ..}. A file that cannot be read is no notice.
std::unique_ptr<NoticeSource> notice_file(std::string directory);

// A metadata service, polled every five seconds in the background. Null: the spec names none.
std::unique_ptr<NoticeSource> notice_of_metadata(Loop& loop, NoticeSpec spec);

}  // namespace rille::agent
