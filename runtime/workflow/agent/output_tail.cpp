#include "runtime/workflow/agent/output_tail.hpp"

namespace rille::agent {

namespace {
// One byte more than the text has shows whether the text begins with a line.
constexpr std::size_t kept_bytes = output_bytes_max + 1;
}  // namespace

void OutputTail::add(std::string_view bytes) {
  if (bytes_.size() + bytes.size() > output_bytes_max) cut_ = true;
  bytes_.append(bytes);
  if (bytes_.size() > 2 * kept_bytes) bytes_.erase(0, bytes_.size() - kept_bytes);
}

std::string OutputTail::text() const {
  if (!cut_) return bytes_;
  const std::size_t begin = bytes_.size() - output_bytes_max;
  if (const std::size_t line = bytes_.find('\n', begin - 1); line != std::string::npos && line + 1 < bytes_.size())
    return bytes_.substr(line + 1);
  std::size_t at = begin;
  while (at < bytes_.size() && (static_cast<unsigned char>(bytes_[at]) & 0xc0) == 0x80) ++at;
  return bytes_.substr(at);
}

}  // namespace rille::agent
