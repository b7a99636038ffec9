// How its spot machines are told of their end; docs/design/providers.md names the sources.
#include "runtime/core/base/notice_spec.hpp"
#include "runtime/workflow/provider/tencent/tencent.hpp"

namespace rille::provider {

// "2018-08-18 12:05:33", in Beijing.
NoticeSpec tencent_notice(const std::string& metadata) {
  NoticeSpec out;
  out.url = metadata + "/latest/meta-data/spot/termination-time";
  out.ahead_s = 8 * 3'600;
  return out;
}

}  // namespace rille::provider
