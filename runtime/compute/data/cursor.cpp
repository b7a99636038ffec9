#include "runtime/compute/data/cursor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/core/base/error.hpp"

namespace rille::data {

namespace {
constexpr std::uint64_t cursor_max = std::uint64_t{1} << 62;  // leaves room to add the rows of a batch
}

Value state_of(Value identity, std::uint64_t cursor) {
  identity.set("cursor", std::to_string(cursor));
  return identity;
}

Result<std::uint64_t> cursor_of(const Value& identity, const Value& state) {
  for (const auto& [key, value] : *identity.as_object())
    if (!(state[key] == value))
      return make_error(ErrorKind::state,
                        fmt::format("cannot continue a data set whose {} was {}: it is {} now", key,
                                    state[key].to_json(), value.to_json()),
                        "open the data set with the same data and options as before");
  const std::string text = state.text("cursor");
  std::uint64_t cursor = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), cursor);
  if (failed != std::errc() || end != text.data() + text.size() || cursor > cursor_max)
    return make_error(
        ErrorKind::state,
        fmt::format("the saved position of a data set (cursor) is not valid: {}", state["cursor"].to_json()),
        "load the state from an undamaged checkpoint, or start the data set from its beginning");
  return cursor;
}

void hash_data(store::Hasher& hasher, std::string_view bytes, const Look& look) {
  constexpr std::size_t whole_bytes_max = 256 << 20, pieces = 2048, piece_bytes = 64 << 10;
  const bool whole = bytes.size() <= whole_bytes_max;
  const std::size_t stride = whole ? piece_bytes : (bytes.size() - piece_bytes) / (pieces - 1);
  const std::size_t end = whole ? bytes.size() : stride * pieces;
  Pace pace(look);
  for (std::size_t at = 0; at < end; at += stride) {
    hasher.update(bytes.substr(at, piece_bytes));
    pace.did(piece_bytes);
  }
}

}  // namespace rille::data
