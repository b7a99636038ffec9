#include "runtime/core/store/settings.hpp"

#include "runtime/core/store/file.hpp"

namespace rille::store {

namespace {
constexpr std::int64_t settings_bytes_max = 16 << 20;
constexpr const char* example = "{\"ssh\": {\"hosts\": [\"me@gpu1\"]}}";
}  // namespace

Result<Value> read_settings(const std::string& file) {
  const Value none{Value::Object{}};
  if (file.empty()) return none;
  RILLE_TRY(const std::string text, read_file(file, settings_bytes_max));
  Result<Value> read = Value::from_json(text);
  if (!read)
    return make_error(ErrorKind::config, file + ": " + read.error().message, std::string("it is JSON: ") + example);
  if (read->as_array() && read->as_array()->empty()) return none;  // an empty Lua table is written as []
  if (!read->as_object())
    return make_error(ErrorKind::config, file + ": it is not an object",
                      std::string("an object with a field per provider: ") + example);
  return read;
}

}  // namespace rille::store
