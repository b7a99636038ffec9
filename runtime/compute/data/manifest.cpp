// Reads and writes the JSON of a checkpoint's manifest.
#include <fmt/format.h>

#include "runtime/compute/data/checkpoint.hpp"

namespace rille::data {

namespace {

constexpr std::string_view format_name = "rille-checkpoint";
constexpr int format_version = 1;
constexpr std::string_view suffix = ".safetensors";

Error unsound(std::string_view shown, std::string_view why) {
  return make_error(ErrorKind::integrity, fmt::format("'{}' is not a valid checkpoint manifest: {}", shown, why),
                    "load an earlier checkpoint, or restore this one from a backup");
}

bool is_hex(const std::string& text, std::size_t size) {
  return text.size() == size && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Result<CheckpointFile> file_from(const Value& v, std::string_view shown) {
  CheckpointFile file;
  file.name = v.text("name");
  file.fingerprint = {v.integer("size_bytes", -1), v.text("xxh3"), v.text("sha256")};
  if (!is_checkpoint_file_name(file.name)) return unsound(shown, fmt::format("'{}' is not a file's name", file.name));
  const store::Fingerprint& print = file.fingerprint;
  if (print.size_bytes < 0 || !is_hex(print.xxh3, 32) || !(print.sha256.empty() || is_hex(print.sha256, 64)))
    return unsound(shown, fmt::format("file '{}' has no size or no digest", file.name));
  return file;
}

}  // namespace

bool is_checkpoint_file_name(std::string_view name) {
  return name.size() > suffix.size() && name.size() < 200 && name.ends_with(suffix) && name.front() != '.' &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

std::string Manifest::to_json() const {
  Value v;
  v.set("format", format_name).set("version", format_version);
  v.set("step", step).set("generation", generation).set("epoch", epoch).set("created_us", created_us);
  v.set("cursor", cursor).set("rng", rng).set("schedule", schedule).set("metadata", metadata);
  Value::Array list;
  for (const CheckpointFile& file : files) {
    Value entry;
    entry.set("name", file.name).set("size_bytes", file.fingerprint.size_bytes).set("xxh3", file.fingerprint.xxh3);
    if (!file.fingerprint.sha256.empty()) entry.set("sha256", file.fingerprint.sha256);
    list.push_back(std::move(entry));
  }
  v.set("files", std::move(list));
  v.set("digest", store::fingerprint(v.to_json()).xxh3);
  return v.to_json_pretty() + "\n";
}

Result<Manifest> Manifest::from_json(std::string_view text, std::string_view shown) {
  auto parsed = Value::from_json(text);
  if (!parsed) return unsound(shown, parsed.error().message);
  Value v = std::move(*parsed);
  if (v.text("format") != format_name) return unsound(shown, "its format is not Rille's");
  if (v.integer("version") != format_version)
    return unsound(shown,
                   fmt::format("its version is {} and this build reads {}", v.integer("version"), format_version));
  std::string digest = v.text("digest");
  v.as_object()->erase("digest");
  if (digest != store::fingerprint(v.to_json()).xxh3)
    return unsound(shown, "its digest does not match: the file was cut off or edited");
  Manifest m;
  m.step = v.integer("step", -1);
  m.generation = v.integer("generation");
  m.epoch = v.integer("epoch");
  m.created_us = v.integer("created_us");
  m.cursor = v["cursor"], m.rng = v["rng"], m.schedule = v["schedule"], m.metadata = v["metadata"];
  if (m.step < 0) return unsound(shown, "it has no step");
  const Value::Array* files = v["files"].as_array();
  if (!files) return unsound(shown, "it has no list of files");
  for (const Value& entry : *files) {
    RILLE_TRY(CheckpointFile file, file_from(entry, shown));
    m.files.push_back(std::move(file));
  }
  return m;
}

}  // namespace rille::data
