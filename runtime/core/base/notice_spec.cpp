#include "runtime/core/base/notice_spec.hpp"

namespace rille {

namespace {
constexpr std::pair<const char*, std::string NoticeSpec::*> texts[] = {{"url", &NoticeSpec::url},
                                                                       {"header", &NoticeSpec::header},
                                                                       {"value", &NoticeSpec::value},
                                                                       {"token_url", &NoticeSpec::token_url},
                                                                       {"lasts_header", &NoticeSpec::lasts_header},
                                                                       {"token_header", &NoticeSpec::token_header},
                                                                       {"field", &NoticeSpec::field},
                                                                       {"list", &NoticeSpec::list},
                                                                       {"kind_field", &NoticeSpec::kind_field},
                                                                       {"kind", &NoticeSpec::kind},
                                                                       {"begins", &NoticeSpec::begins}};
}  // namespace

Value NoticeSpec::to_value() const {
  Value out;
  if (url.empty()) return out;
  for (const auto& [name, member] : texts)
    if (!(this->*member).empty()) out.set(name, this->*member);
  if (in_s >= 0) out.set("in_s", in_s);
  if (ahead_s != 0) out.set("ahead_s", ahead_s);
  return out;
}

NoticeSpec NoticeSpec::from_value(const Value& v) {
  NoticeSpec out;
  // an older Rille wrote this spec: it holds only the cloud's name, so treat it as empty
  if (!v["cloud"].is_null()) return out;
  for (const auto& [name, member] : texts) out.*member = v.text(name);
  out.in_s = v.integer("in_s", -1);
  out.ahead_s = v.integer("ahead_s");
  return out;
}

}  // namespace rille
