// NoticeSpec: where a machine asks whether it will be taken away, and how the answer says so. A provider's driver makes
// it, the first boot writes it into machine.json ("notice"), and the agent there asks: an agent knows no cloud.
// A plain value without secrets.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/base/value.hpp"

namespace rille {

struct NoticeSpec {
  std::string url;            // "": nobody is asked
  std::string header, value;  // that every question bears
  // Where a token is PUT for, the header of that which says for how long, and the header that bears it; "": none.
  std::string token_url, lasts_header, token_header;
  // JSON: the field that names the instant; where there is a `list`, of its first element whose `kind_field` says
  // `kind`, and one without an instant is due now. "": the answer is text.
  std::string field, list, kind_field, kind;
  std::string begins;        // text: it begins so, or says nothing
  std::int64_t in_s = -1;    // text: that, not when; so long after it was heard. -1: it names the instant
  std::int64_t ahead_s = 0;  // of the clock by which the instant is told, ahead of UTC

  Value to_value() const;  // of "": null
  static NoticeSpec from_value(const Value& value);
};

}  // namespace rille
