#include "runtime/workflow/engine/stage_choices.hpp"

#include <fmt/format.h>

#include "runtime/core/base/units.hpp"
#include "runtime/workflow/transfer/stage.hpp"

namespace rille::engine {

namespace {

Error wrong_option(const char* name, const Value& value, const char* expected, const char* hint) {
  return make_error(ErrorKind::invalid, fmt::format("box:stage: {} = {}: expected {}", name, value.to_json(), expected),
                    hint);
}

Result<bool> choice(const Value& options, const char* name) {
  const Value& value = options[name];
  if (value.is_null()) return false;
  if (const bool* yes = value.as_bool()) return *yes;
  return wrong_option(name, value, "true or false", "leave it out for false");
}

Result<std::int64_t> bandwidth(const Value& value) {
  constexpr double bytes_max = 1e15;
  constexpr const char* hint = "bandwidth = \"100MB/s\"";
  double bytes = 0;
  if (value.is_null()) return 0;
  if (const double* number = value.as_number()) bytes = *number;
  if (const std::string* text = value.as_string()) {
    std::string_view size = *text;
    if (size.ends_with("/s")) size.remove_suffix(2);
    const Result<std::int64_t> read = parse_size_bytes(size);
    if (!read) return wrong_option("bandwidth", value, "bytes per second", hint);
    bytes = static_cast<double>(*read);
  }
  if (bytes >= 1 && bytes <= bytes_max) return static_cast<std::int64_t>(bytes);
  return wrong_option("bandwidth", value, "bytes per second, at least 1", hint);
}

}  // namespace

Result<StageChoices> read_stage_choices(const Value& options) {
  StageChoices out;
  if (const Value& digest = options["sha256"]; !digest.is_null()) {
    if (!digest.as_string())
      return wrong_option("sha256", digest, "64 hexadecimal digits", "sha256sum FILE writes them");
    if (!digest.as_string()->empty()) { RILLE_TRY(out.sha256, transfer::read_sha256(*digest.as_string())); }
  }
  RILLE_TRY(out.mirror, choice(options, "mirror"));
  RILLE_TRY(out.unpack, choice(options, "unpack"));
  RILLE_TRY(out.bytes_per_second_max, bandwidth(options["bandwidth"]));
  if (out.mirror && out.unpack)
    return make_error(ErrorKind::invalid, "box:stage: mirror and unpack do not go together",
                      "mirror is for folders, unpack for one archive: leave one of them out");
  if (out.mirror && !out.sha256.empty())
    return make_error(ErrorKind::invalid, "box:stage: mirror and sha256 do not go together",
                      "mirror is for folders, sha256 for one file: leave one of them out");
  return out;
}

}  // namespace rille::engine
