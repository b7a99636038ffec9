// Texts of scripts, machines and clouds, made safe to show in a page. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/base/value.hpp"

namespace rille::cli {

// Valid UTF-8 without control characters but newline and tab: each other one is shown as text ("^[", "\x9b"), colors
// are left out, and marks that turn the direction of writing are shown as "\u202e".
std::string plain_text(std::string_view text);
// The same for all texts and names in a value. Strings of bytes, numbers that JSON lacks and maps become texts.
Value plain_value(const Value& value);
// The value as JSON, on one line and cut after `bytes_max`.
std::string plain_json(const Value& value, std::size_t bytes_max);

// For the text of an HTML element or an attribute in double quotes.
std::string in_html(std::string_view text);
// For a <script> block: JSON that cannot end the block.
std::string json_in_html(const Value& value);

}  // namespace rille::cli
