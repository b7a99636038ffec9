// NoticeSpec: how a machine asks its cloud whether it will be preempted, and how to read the answer. A driver makes
// it, the first boot writes it into machine.json ("notice"), and the agent uses it: agents know no clouds.
// A plain value without secrets.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/base/value.hpp"

namespace rille {

struct NoticeSpec {
  std::string url;            // "": there is no such service
  std::string header, value;  // sent with every request
  // If the service needs a token: its URL (PUT), the header with the wanted lifetime, the header that carries the
  // token.
  std::string token_url, lasts_header, token_header;
  // JSON answer: `field` holds the instant. With `list`, use the first element whose `kind_field` is `kind`; without
  // an instant there, preemption is due now. An empty `field` means that the answer is text.
  std::string field, list, kind_field, kind;
  std::string begins;        // text answer: a notice starts with this; other answers mean no notice
  std::int64_t in_s = -1;    // text answer: seconds from answer to preemption; -1: the text is the instant
  std::int64_t ahead_s = 0;  // how far the cloud's clock is ahead of UTC

  Value to_value() const;  // null if url is empty
  static NoticeSpec from_value(const Value& value);
};

}  // namespace rille
