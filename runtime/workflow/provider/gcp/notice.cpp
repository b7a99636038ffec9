// How its spot machines are told of their end; docs/design/providers.md names the sources.
#include "runtime/core/base/notice_spec.hpp"
#include "runtime/workflow/provider/gcp/gcp.hpp"

namespace rille::provider {

// TRUE: that, not when. It is about half a minute.
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
