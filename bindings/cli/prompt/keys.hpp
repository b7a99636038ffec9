// What a terminal sends, as keys. Understood are UTF-8, control characters, Alt as an escape before the key, the cursor
// keys of xterm, VT and the Linux console with their modifiers, and bracketed paste. What is not known is dropped
// whole.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rille::cli {

struct Key {
  enum class Kind {
    text,     // one character or more, typed
    paste,    // with plain newlines, and without other control characters
    control,  // text: the letter, as in "A" for Ctrl-A
    alt,      // text: the character
    enter,
    alt_enter,
    tab,
    back_tab,
    backspace,
    alt_backspace,
    erase,
    escape,
    left,
    right,
    up,
    down,
    home,
    end,
    page_up,
    page_down,
    word_left,
    word_right,
    unknown,
  };
  Kind kind = Kind::unknown;
  std::string text = {};
  bool operator==(const Key&) const = default;
};

class KeyReader {
 public:
  static constexpr std::size_t paste_bytes_max = 64 << 20;

  std::vector<Key> read(std::string_view bytes);
  // An escape has come, and what follows it may be on its way. The caller waits a moment, then calls flush().
  bool waits_for_more() const { return !pasting_ && !pending_.empty(); }
  std::vector<Key> flush();

 private:
  // Takes one key from the front of pending_. False: it is not complete.
  bool take(std::vector<Key>& out);
  bool take_escape(std::vector<Key>& out);
  bool take_sequence(std::vector<Key>& out);
  bool take_paste(std::vector<Key>& out);

  std::string pending_;
  bool pasting_ = false;
};

}  // namespace rille::cli
