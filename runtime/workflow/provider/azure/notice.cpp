// How Azure notifies its spot machines of preemption; docs/design/providers.md cites the sources.
#include "runtime/core/base/notice_spec.hpp"
#include "runtime/workflow/provider/azure/azure.hpp"

namespace rille::provider {

// The metadata service lists events: {"Events": [{"EventType": "Preempt", "NotBefore": "Mon, 19 Sep 2016 18:29:47
// GMT"}]}. An event that has begun has no NotBefore.
NoticeSpec azure_notice(const std::string& metadata) {
  NoticeSpec out;
  out.url = metadata + "/metadata/scheduledevents?api-version=2020-07-01";
  out.header = "Metadata";
  out.value = "true";
  out.list = "Events";
  out.kind_field = "EventType";
  out.kind = "Preempt";
  out.field = "NotBefore";
  return out;
}

}  // namespace rille::provider
