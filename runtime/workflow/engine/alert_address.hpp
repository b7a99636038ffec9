// The address for alerts of a run's own budget (rille.budget, alert_url). It is kept in a row of `alerts` that is never
// due, so that alerts can be sent when the run's process is gone. An address is http(s)://.., mailto:a@b,c@d, or
// env:NAME for an environment variable that holds the address; the variable's value is never written.
#pragma once

#include <string>

#include "runtime/core/store/sqlite.hpp"

namespace rille::engine {

Result<> keep_alert_address(store::Db& db, const std::string& run, const std::string& url, std::int64_t now_us);
std::string alert_address_key(const std::string& run);  // the key of the run's address row in `alerts`

}  // namespace rille::engine
