#include "runtime/compute/data/cursor.hpp"

#include <fmt/format.h>

#include <charconv>

#include "runtime/core/base/error.hpp"

namespace rille::data {

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
  if (failed != std::errc() || end != text.data() + text.size())
    return make_error(
        ErrorKind::state,
        fmt::format("the saved position of a data set (cursor) is not valid: {}", state["cursor"].to_json()),
        "load the state from an undamaged checkpoint, or start the data set from its beginning");
  return cursor;
}

}  // namespace rille::data
