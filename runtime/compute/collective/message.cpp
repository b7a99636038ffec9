#include "runtime/compute/collective/message.hpp"

#include <fmt/format.h>

#include <bit>

namespace rille::collective {

static_assert(std::endian::native == std::endian::little);

Result<std::string> encode_message(const Value& value) {
  const std::string text = value.to_json();
  if (text.size() > message_bytes_max) {
    return make_error(ErrorKind::invalid, fmt::format("the message between ranks has {} bytes; at most {} can be sent",
                                                      text.size(), message_bytes_max));
  }
  const auto length = std::uint32_t(text.size());
  std::string out(4, '\0');
  std::memcpy(out.data(), &length, 4);
  return out + text;
}

std::size_t MessageParser::length() const {
  std::uint32_t n = 0;
  std::memcpy(&n, buffer_.data(), 4);
  return n;
}

Result<std::optional<Value>> MessageParser::next() {
  if (buffer_.size() < 4) return std::optional<Value>();
  const std::size_t n = length();
  if (n > message_bytes_max) {
    return make_error(ErrorKind::integrity,
                      fmt::format("a message of {} bytes; at most {} are allowed", n, message_bytes_max));
  }
  if (buffer_.size() < 4 + n) return std::optional<Value>();
  if (n == 0) {
    buffer_.clear();
    return std::optional<Value>(Value());
  }
  auto value = Value::from_json(std::string_view(buffer_).substr(4, n));
  if (!value || !value->as_object()) return make_error(ErrorKind::integrity, "a message that is not a JSON object");
  buffer_.clear();
  return std::optional<Value>(std::move(*value));
}

namespace {

constexpr std::uint32_t magic = 0x656c6c52;  // "Rlle"

struct Wire {
  std::uint32_t magic = 0;
  std::uint8_t kind = 0, dtype = 0, reduce = 0, rank = 0;
  std::uint64_t number = 0;
  std::int32_t peer = 0, tensors = 0;
  std::uint64_t shapes = 0;
  std::int64_t count = 0;
  std::int64_t sizes[kernels::max_rank] = {};
  std::uint64_t halves = 0;
};
static_assert(sizeof(Wire) == head_bytes);

}  // namespace

void encode_head(const Operation& op, std::uint64_t number, std::byte* to) {
  Wire w;
  w.magic = magic;
  w.kind = std::uint8_t(op.kind);
  w.dtype = std::uint8_t(op.dtype);
  w.reduce = std::uint8_t(op.reduce);
  w.rank = std::uint8_t(op.shape.n);
  w.number = number;
  w.peer = op.peer;
  w.tensors = op.tensors;
  w.shapes = op.shapes;
  w.count = op.count;
  w.halves = std::uint64_t(op.halves);
  for (int i = 0; i < op.shape.n; ++i) w.sizes[i] = op.shape[i];
  std::memcpy(to, &w, sizeof w);
}

Result<Head> decode_head(const std::byte* from) {
  Wire w;
  std::memcpy(&w, from, sizeof w);
  if (w.magic != magic || w.kind > std::uint8_t(Kind::receive) || w.dtype > std::uint8_t(DType::f64) ||
      w.reduce > std::uint8_t(Reduce::product) || w.rank > kernels::max_rank || w.count < 0 || w.tensors < 0 ||
      w.halves > 2 || (w.halves && w.kind < std::uint8_t(Kind::send)))
    return make_error(ErrorKind::integrity, "another rank sent an invalid message head");
  Head head;
  head.number = w.number;
  auto& op = head.operation;
  op.kind = Kind(w.kind);
  op.dtype = DType(w.dtype);
  op.reduce = Reduce(w.reduce);
  op.peer = w.peer;
  op.tensors = w.tensors;
  op.shapes = w.shapes;
  op.count = w.count;
  op.halves = int(w.halves);
  for (int i = 0; i < w.rank; ++i) op.shape.push(w.sizes[i]);
  return head;
}

}  // namespace rille::collective
