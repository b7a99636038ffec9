// How Huawei Cloud notifies its spot machines of preemption; docs/design/providers.md cites the sources.
#include "runtime/core/base/notice_spec.hpp"
#include "runtime/workflow/provider/huawei/huawei.hpp"

namespace rille::provider {

// Any successful answer of the metadata service means preemption in about five minutes; it contains no time.
NoticeSpec huawei_notice(const std::string& metadata) {
  NoticeSpec out;
  out.url = metadata + "/openstack/latest/spot/instance-action";
  out.token_url = metadata + "/meta-data/latest/api/token";
  out.lasts_header = "X-Metadata-Token-Ttl-Seconds";
  out.token_header = "X-Metadata-Token";
  out.in_s = 300;
  return out;
}

}  // namespace rille::provider
