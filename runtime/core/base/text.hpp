// Helpers for ASCII text of wire formats and queries; the user's locale has no effect. Pure functions; any thread.
#pragma once

#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

namespace rille {

inline std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// `text` without leading and trailing white space.
inline std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

// The decimal number at the start of `text`, after spaces; 0 if there is none. `rest` receives the text after it.
inline double number_at(std::string_view text, std::string_view* rest = nullptr) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc::result_out_of_range) number = std::numeric_limits<double>::infinity();
  if (rest) *rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace rille
