// The clouds that answer over HTTP, used as the lease layer uses them. For clouds_fuzz, whose server gives kept
// answers, changed; and for clouds_record, which keeps the answers of the fakes (keep_answers.py).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/workflow/provider/providers.hpp"

namespace clouds {

const std::vector<std::string>& names();
// The driver of a cloud whose services are all at `url`. Sets the variables in which it finds keys, and `folder` as the
// home; `folder` has what it reads and writes.
std::unique_ptr<rille::provider::Provider> make(rille::Loop& loop, const std::string& name, const std::string& url,
                                                const std::string& folder);

constexpr unsigned operations = 8;
// Does one of the operations (modulo their number), and checks what the driver promises of any answer.
void use(rille::Loop& loop, rille::provider::Provider& provider, unsigned operation);

}  // namespace clouds
