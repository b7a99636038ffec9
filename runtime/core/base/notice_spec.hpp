// NoticeSpec: how a machine asks its cloud whether it will be preempted, and how to read the answer. A provider's
// driver makes the spec, the first-boot script writes it into machine.json ("notice"), and the agent uses it, so agents
// contain no code for particular clouds. A NoticeSpec holds no secrets.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/base/value.hpp"

namespace rille {

struct NoticeSpec {
  std::string url;            // URL to ask; "": the cloud has no notice service
  std::string header, value;  // name and value of a header sent with every request to `url`
  // Only for a service that needs a token: the URL that issues it (PUT), the header that requests the token's lifetime,
  // and the header that carries the token.
  std::string token_url, lasts_header, token_header;
  // For a JSON answer: `field` names the member with the instant of preemption. With `list`, read the first element
  // whose `kind_field` equals `kind`; if that element has no instant, preemption is due now. Empty `field`: the answer
  // is text.
  std::string field, list, kind_field, kind;
  std::string begins;        // text answer: a preemption notice starts with this; any other answer means no notice
  std::int64_t in_s = -1;    // text answer: seconds from the answer to preemption; -1: the text is the instant
  std::int64_t ahead_s = 0;  // seconds by which the cloud's clock is ahead of UTC

  Value to_value() const;  // a null Value if url is empty
  static NoticeSpec from_value(const Value& value);
};

}  // namespace rille
