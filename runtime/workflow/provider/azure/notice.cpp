// How its spot machines are notified of preemption; docs/design/providers.md cites the sources.
#include "runtime/core/base/notice_spec.hpp"
#include "runtime/workflow/provider/azure/azure.hpp"

namespace rille::provider {

// {"Events": [{"EventType": "Preempt", "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT"}]}; an event in
// progress has no time.
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
