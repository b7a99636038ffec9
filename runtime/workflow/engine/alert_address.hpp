// Where a run's own budget tells of money (rille.budget, alert_url), for whoever tells of it when the run's process is
// gone: a row of `alerts` that is due to nobody. An address is http(s)://.., mailto:a@b,c@d, or env:NAME of a variable
// that says one; what that says is never written.
#pragma once

#include <string>

#include "runtime/core/store/sqlite.hpp"

namespace rille::engine {

Result<> keep_alert_address(store::Db& db, const std::string& run, const std::string& url, std::int64_t now_us);
std::string alert_address_key(const std::string& run);  // of that row

}  // namespace rille::engine
