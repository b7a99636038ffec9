#include "runtime/core/base/send_by.hpp"

#include <fmt/format.h>

#include "runtime/core/base/time.hpp"

namespace rille {

Result<> check_send_by(std::int64_t send_by_wall_us, std::int64_t now_wall_us) {
  if (send_by_wall_us == 0 || now_wall_us < send_by_wall_us) return success();
  Error e =
      make_error(ErrorKind::timeout,
                 fmt::format("the request was not sent: its latest time for sending was {}, {} ago",
                             format_utc(send_by_wall_us), format_duration_ms((now_wall_us - send_by_wall_us) / 1000)),
                 "something before the request is slow: the disk under RILLE_HOME, the credentials, a name server, a "
                 "proxy, a throttled service; or was this machine asleep?");
  e.code = late_code;
  return e;
}

}  // namespace rille
