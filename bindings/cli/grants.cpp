#include "bindings/cli/grants.hpp"

#include <filesystem>

#include "runtime/core/store/file.hpp"

namespace rille::cli {

namespace {

Result<host::Grants> read_beside(const std::filesystem::path& file) {
  RILLE_TRY(const std::string text, store::read_file(file.string()));
  RILLE_TRY(const Value value, Value::from_json(text));
  return host::Grants::parse(value, file.parent_path().string());
}

}  // namespace

Result<host::Grants> grants_of(const std::string& script, const std::vector<std::string>& words) {
  if (!words.empty()) return host::Grants::from_words(words);
  const std::filesystem::path file = std::filesystem::path(script).replace_extension(".grants.json");
  std::error_code ec;
  if (script.empty() || !std::filesystem::exists(file, ec)) return host::Grants::everything();
  Result<host::Grants> grants = read_beside(file);
  if (!grants) grants.error().message = file.string() + ": " + grants.error().message;
  return grants;
}

}  // namespace rille::cli
