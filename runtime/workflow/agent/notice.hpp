// NoticeSource: how an instance learns, on the instance, that it will be taken away. One implementation for each place
// where that is said: a file, which `rille agent notice` or whatever watches the machine writes, and the metadata
// service of a cloud, which the machine's file names. The provider's own word (Machine::notice_wall_us) is the runner's
// affair.
// Loop thread only; look() is called once per tick of the agent and must not hold it up.
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
  // When the machine will be taken away, in wall time; nothing when nothing of the kind has been said.
  virtual Async<std::optional<std::int64_t>> look(CancelToken token) = 0;
};

// D/notice.json: {"deadline_wall_us": ..}. A file that cannot be read is no notice.
std::unique_ptr<NoticeSource> notice_file(std::string directory);

// A metadata service, asked every five seconds beside the agent's other work. Null: the spec names none.
std::unique_ptr<NoticeSource> notice_of_metadata(Loop& loop, NoticeSpec spec);

}  // namespace rille::agent
