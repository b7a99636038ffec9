#include "bindings/cli/prompt/keys.hpp"

#include <algorithm>

namespace rille::cli {

namespace {

using Kind = Key::Kind;

constexpr char escape = '\x1b';
constexpr std::string_view paste_begin = "200", paste_end = "\x1b[201~";
constexpr std::size_t sequence_bytes_max = 64;

Key key_of(unsigned char c) {
  if (c == '\r' || c == '\n') return {Kind::enter};
  if (c == '\t') return {Kind::tab};
  if (c == 0x7f || c == 0x08) return {Kind::backspace};
  if (c == escape) return {Kind::escape};
  if (c == 0x1f) return {Kind::control, "_"};
  return {Kind::control, std::string(1, static_cast<char>(c + 64))};
}

std::size_t bytes_of_character(unsigned char first) {
  return first >= 0xf5 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
}

// The key of "ESC [ NUMBERS FINAL"; `modified`: by Ctrl or Alt.
Kind kind_of(char final, const std::string& number, bool modified) {
  switch (final) {
    case 'A': return Kind::up;
    case 'B': return Kind::down;
    case 'C': return modified ? Kind::word_right : Kind::right;
    case 'D': return modified ? Kind::word_left : Kind::left;
    case 'H': return Kind::home;
    case 'F': return Kind::end;
    case 'Z': return Kind::back_tab;
    case '~': break;
    default: return Kind::unknown;
  }
  if (number == "1" || number == "7") return Kind::home;
  if (number == "4" || number == "8") return Kind::end;
  if (number == "3") return Kind::erase;
  if (number == "5") return Kind::page_up;
  if (number == "6") return Kind::page_down;
  return Kind::unknown;
}

// Pasted text: other systems' ends of lines become newlines.
std::string pasted(std::string_view raw) {
  std::string out;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const auto c = static_cast<unsigned char>(raw[i]);
    if (c == '\r') {
      out += '\n';
      if (i + 1 < raw.size() && raw[i + 1] == '\n') ++i;
    } else if (c >= 0x20 ? c != 0x7f : c == '\n' || c == '\t') {
      out += raw[i];
    }
  }
  return out;
}

}  // namespace

std::vector<Key> KeyReader::read(std::string_view bytes) {
  pending_ += bytes;
  std::vector<Key> out;
  while (!pending_.empty() && take(out)) {}
  return out;
}

std::vector<Key> KeyReader::flush() {
  std::vector<Key> out;
  if (!waits_for_more()) return out;
  const bool lone = pending_.size() == 1 && pending_[0] == escape;
  out.push_back({lone ? Kind::escape : Kind::unknown});
  pending_.clear();
  return out;
}

bool KeyReader::take(std::vector<Key>& out) {
  if (pasting_) return take_paste(out);
  const auto c = static_cast<unsigned char>(pending_[0]);
  if (c == escape) return take_escape(out);
  if (c < 0x20 || c == 0x7f) {
    out.push_back(key_of(c));
    pending_.erase(0, 1);
    return true;
  }
  std::size_t end = 0;  // a run of text is one key
  while (end < pending_.size()) {
    const auto first = static_cast<unsigned char>(pending_[end]);
    if (first < 0x20 || first == 0x7f) break;
    const std::size_t bytes = bytes_of_character(first);
    if (end + bytes > pending_.size()) break;
    end += bytes;
  }
  if (end == 0) return false;
  out.push_back({Kind::text, pending_.substr(0, end)});
  pending_.erase(0, end);
  return true;
}

bool KeyReader::take_escape(std::vector<Key>& out) {
  if (pending_.size() < 2) return false;
  const char next = pending_[1];
  if (next == '[' || next == 'O') return take_sequence(out);
  if (next == escape) {
    out.push_back({Kind::escape});
    pending_.erase(0, 1);
    return true;
  }
  const auto c = static_cast<unsigned char>(next);
  const std::size_t bytes = bytes_of_character(c);
  if (pending_.size() < 1 + bytes) return false;
  if (c == '\r' || c == '\n') out.push_back({Kind::alt_enter});
  else if (c == 0x7f || c == 0x08) out.push_back({Kind::alt_backspace});
  else if (c < 0x20) out.push_back({Kind::unknown});
  else out.push_back({Kind::alt, pending_.substr(1, bytes)});
  pending_.erase(0, 1 + bytes);
  return true;
}

// ESC [ or ESC O, then numbers, then one final byte.
bool KeyReader::take_sequence(std::vector<Key>& out) {
  std::size_t at = 2;
  if (pending_.size() > at && pending_[1] == '[' && pending_[at] == '[') ++at;  // the Linux console's function keys
  while (at < pending_.size() && pending_[at] >= 0x20 && pending_[at] < 0x40) ++at;
  if (at >= pending_.size()) {
    if (pending_.size() < sequence_bytes_max) return false;
    out.push_back({Kind::unknown});
    pending_.clear();
    return true;
  }
  const char final = pending_[at];
  const std::string numbers = pending_.substr(2, at - 2);
  const bool whole = final >= 0x40 && final < 0x7f;
  pending_.erase(0, whole ? at + 1 : at);
  const std::size_t semicolon = numbers.find(';');
  const std::string number = numbers.substr(0, semicolon);
  if (final == '~' && number == paste_begin) {
    pasting_ = true;
    return true;
  }
  const bool modified = semicolon != std::string::npos && numbers.size() > semicolon + 1 &&
                        numbers[semicolon + 1] >= '3' && numbers[semicolon + 1] <= '8';
  out.push_back({whole ? kind_of(final, number, modified) : Kind::unknown});
  return true;
}

bool KeyReader::take_paste(std::vector<Key>& out) {
  const std::size_t end = pending_.find(paste_end);
  if (end == std::string::npos && pending_.size() < paste_bytes_max) return false;
  out.push_back({Kind::paste, pasted(std::string_view(pending_).substr(0, end))});
  pending_.erase(0, end == std::string::npos ? end : end + paste_end.size());
  pasting_ = false;
  return true;
}

}  // namespace rille::cli
