// A run's events as sentences: for the notes that a run prints, and for its report.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"

namespace rille::cli {

// "": the event is not told to people.
std::string event_text(const Value& event);

}  // namespace rille::cli
