// How AWS notifies its spot machines of preemption; docs/design/providers.md cites the sources.
#include "runtime/core/base/notice_spec.hpp"
#include "runtime/workflow/provider/aws/aws.hpp"

namespace rille::provider {

// The metadata service answers {"action": "terminate", "time": "2017-09-18T08:22:00Z"} two minutes before that time.
NoticeSpec aws_notice(const std::string& metadata) {
  NoticeSpec out;
  out.url = metadata + "/latest/meta-data/spot/instance-action";
  out.token_url = metadata + "/latest/api/token";
  out.lasts_header = "X-aws-ec2-metadata-token-ttl-seconds";
  out.token_header = "X-aws-ec2-metadata-token";
  out.field = "time";
  return out;
}

}  // namespace rille::provider
