// TensorBoard's event files: records of TFRecord, each an Event in the encoding of Protocol Buffers. The fields are
// those of tensorboard/compat/proto/event.proto and summary.proto; four kinds of fields need no library.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <set>

#include "bindings/cli/metrics/formats.hpp"

namespace rille::cli {

namespace {

// CRC-32C (Castagnoli, RFC 3720 B.4), as TFRecord uses it.
std::uint32_t crc32c(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> out{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      out[i] = i;
      for (int bit = 0; bit < 8; ++bit) out[i] = (out[i] >> 1) ^ (out[i] & 1 ? 0x82f63b78u : 0);
    }
    return out;
  }();
  std::uint32_t crc = ~0u;
  for (const char c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

std::uint32_t masked_crc(std::string_view bytes) {  // tensorflow/core/lib/hash/crc32c.h
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

template <class Int>
std::string little_endian(Int value) {
  std::string out;
  for (std::size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

enum Wire { number = 0, eight_bytes = 1, with_length = 2, four_bytes = 5 };
std::string field_key(unsigned field, Wire wire) { return varint(field << 3 | wire); }
std::string length_field(unsigned field, std::string_view bytes) {
  return field_key(field, with_length) + varint(bytes.size()) + std::string(bytes);
}

std::string event(double wall_time, std::string_view rest) {
  const auto bits = std::bit_cast<std::uint64_t>(wall_time);
  std::string out = field_key(1, eight_bytes) + little_endian(bits);
  out += rest;
  const std::string size = little_endian(static_cast<std::uint64_t>(out.size()));
  return size + little_endian(masked_crc(size)) + out + little_endian(masked_crc(out));
}

std::string scalar_event(const std::string& tag, const agent::Metric& m, std::size_t place) {
  const double step = m.step && std::abs(*m.step) < 9e18 ? *m.step : static_cast<double>(place);
  const auto value = std::bit_cast<std::uint32_t>(static_cast<float>(m.value));
  const std::string scalar = length_field(1, tag) + field_key(2, four_bytes) + little_endian(value);
  return event(static_cast<double>(m.at_us) / 1e6, field_key(2, number) +
                                                       varint(static_cast<std::uint64_t>(std::llround(step))) +
                                                       length_field(5, length_field(1, scalar)));
}

// "main/train#1" becomes the folder "main-train#1". TensorBoard shows the folder's name.
std::string folder_of(const std::string& source, std::set<std::string>& taken) {
  std::string base;
  for (const char c : source) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    base += plain || std::string_view("._#+, ").find(c) != std::string_view::npos ? c : '-';
  }
  if (base.empty() || base.front() == '.') base = "-" + base;
  base.resize(std::min<std::size_t>(base.size(), 100));
  std::string out = base;
  for (int n = 2; !taken.insert(out).second; ++n) out = fmt::format("{} {}", base, n);
  return out;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> metrics_tensorboard(const MetricList& all, const std::string& run,
                                                                     std::int64_t created_us) {
  std::map<std::string, std::string> by_source;
  for (const engine::MetricSeries& s : all) {
    std::string& bytes = by_source[s.source];
    if (bytes.empty()) bytes = event(static_cast<double>(created_us) / 1e6, length_field(3, "brain.Event:2"));
    for (std::size_t i = 0; i < s.points.size(); ++i) bytes += scalar_event(s.name, s.points[i], i + 1);
  }
  std::vector<std::pair<std::string, std::string>> out;
  std::set<std::string> taken;
  for (auto& [source, bytes] : by_source)
    out.emplace_back(
        fmt::format("{}/{}/events.out.tfevents.{}.rille", run, folder_of(source, taken), created_us / 1'000'000),
        std::move(bytes));
  return out;
}

}  // namespace rille::cli
