// How Tencent Cloud notifies its spot machines of preemption; docs/design/providers.md cites the sources.
#include "runtime/core/base/notice_spec.hpp"
#include "runtime/workflow/provider/tencent/tencent.hpp"

namespace rille::provider {

// The metadata service answers the time of termination in Beijing time: "2018-08-18 12:05:33".
NoticeSpec tencent_notice(const std::string& metadata) {
  NoticeSpec out;
  out.url = metadata + "/latest/meta-data/spot/termination-time";
  out.ahead_s = 8 * 3'600;
  return out;
}

}  // namespace rille::provider
