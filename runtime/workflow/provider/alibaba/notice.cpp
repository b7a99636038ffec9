// How Alibaba Cloud notifies its spot machines of preemption; docs/design/providers.md cites the sources.
#include "runtime/core/base/notice_spec.hpp"
#include "runtime/workflow/provider/alibaba/alibaba.hpp"

namespace rille::provider {

// The metadata service answers the time of termination, "2018-04-17T02:05:07Z", about five minutes before it.
NoticeSpec alibaba_notice(const std::string& metadata) {
  NoticeSpec out;
  out.url = metadata + "/latest/meta-data/instance/spot/termination-time";
  out.token_url = metadata + "/latest/api/token";
  out.lasts_header = "X-aliyun-ecs-metadata-token-ttl-seconds";
  out.token_header = "X-aliyun-ecs-metadata-token";
  return out;
}

}  // namespace rille::provider
