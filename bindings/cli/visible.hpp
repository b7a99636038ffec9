// Makes text safe that a rented machine, a cloud or a script has written, before a terminal shows it. A control
// sequence can do more than show text: OSC 52 writes the clipboard, a cursor report types into the shell. Colors (SGR)
// pass, except "conceal"; each byte that starts another control sequence is shown as text ("^[", "\x9b").
#pragma once

#include <string>
#include <string_view>

namespace rille::cli {

// For lines of Rille's own, which may quote such text: newline and tab pass, carriage return only before a newline.
// What could overwrite or erase the words around it is shown. A color that the text leaves on ends with it. Each call
// looks at its own text only: a sequence cut off at the end of `text` is shown as text.
std::string visible(std::string_view text);

// For the output of programs, which begins on a line of its own: carriage return and "erase in the line" pass too, for
// progress bars.
std::string visible_output(std::string_view text);

// For one line that may be cut: `visible` without colors, and with newlines and tabs as spaces.
std::string visible_line(std::string_view text);

// Whether a color is on after the text. `shown`: a result of the functions above; `before`: whether one was on.
bool leaves_color(std::string_view shown, bool before);

}  // namespace rille::cli
