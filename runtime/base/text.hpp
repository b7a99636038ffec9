// Text of wire formats and queries, which is ASCII whatever the user's locale says. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace rille {

inline std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace rille
