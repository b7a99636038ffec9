// How Google notifies its spot machines of preemption; docs/design/providers.md cites the sources.
#include "runtime/core/base/notice_spec.hpp"
#include "runtime/workflow/provider/gcp/gcp.hpp"

namespace rille::provider {

// The metadata service answers TRUE, without a time, about 30 seconds before the machine is preempted.
NoticeSpec gcp_notice(const std::string& metadata) {
  NoticeSpec out;
  out.url = metadata + "/computeMetadata/v1/instance/preempted";
  out.header = "Metadata-Flavor";
  out.value = "Google";
  out.begins = "TRUE";
  out.in_s = 30;
  return out;
}

}  // namespace rille::provider
