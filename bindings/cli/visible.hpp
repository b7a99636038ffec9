// What a terminal may be given of a text that a rented machine, a cloud or a script has written. A control sequence can
// do more than show text: OSC 52 writes the clipboard, a cursor report types into the shell. Colors (SGR) and "erase to
// the end of the line" pass; each byte that starts another control sequence is shown as text ("^[", "\x9b").
#pragma once

#include <string>
#include <string_view>

namespace rille::cli {

// Newline, tab and carriage return stay. Every text is judged alone: a sequence that is cut at its end does not pass.
std::string visible(std::string_view text);

}  // namespace rille::cli
