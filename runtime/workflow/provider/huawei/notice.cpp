// How its spot machines are told of their end; docs/design/providers.md names the sources.
#include "runtime/core/base/notice_spec.hpp"
#include "runtime/workflow/provider/huawei/huawei.hpp"

namespace rille::provider {

// Any answer: that, not when. It is about five minutes.
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
