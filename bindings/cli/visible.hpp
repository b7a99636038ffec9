// Makes text safe that a rented machine, a cloud or a script has written, before a terminal shows it. A control
// sequence can do more than show text: OSC 52 writes the clipboard, a cursor report types into the shell. Colors
// (SGR) and "erase to the end of the line" pass; each byte that starts another control sequence is shown as text
// ("^[", "\x9b").
#pragma once

#include <string>
#include <string_view>

namespace rille::cli {

// Newline, tab and carriage return pass. Each call looks at its own text only: a sequence cut off at the end of
// `text` is shown as text.
std::string visible(std::string_view text);

}  // namespace rille::cli
