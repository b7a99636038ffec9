// Reads and writes the JSON of a checkpoint's manifest.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/compute/data/checkpoint.hpp"

namespace rille::data {

namespace {

constexpr std::string_view format_name = "rille-checkpoint";
constexpr int plain_version = 1, format_version = 2;  // 1: every file is plain, as the first builds wrote them
constexpr std::string_view suffix = ".safetensors";

Error unsound(std::string_view shown, std::string_view why) {
  return make_error(ErrorKind::integrity, fmt::format("'{}' is not a valid checkpoint manifest: {}", shown, why),
                    "load an earlier checkpoint, or restore this one from a backup");
}

bool is_hex(const std::string& text, std::size_t size) {
  return text.size() == size && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Value file_value(const CheckpointFile& file) {
  Value entry;
  entry.set("name", file.name).set("size_bytes", file.fingerprint.size_bytes).set("xxh3", file.fingerprint.xxh3);
  if (!file.fingerprint.sha256.empty()) entry.set("sha256", file.fingerprint.sha256);
  if (!file.part.empty()) entry.set("part", file.part);
  if (file.counts) entry.set("counts", Value(Value::Array(file.counts->begin(), file.counts->end())));
  Value::Object slices;
  for (const auto& [tensor, slice] : file.slices)
    slices[tensor] = Value().set("first", slice.first).set("of", slice.of);
  if (!slices.empty()) entry.set("slices", Value(std::move(slices)));
  return entry;
}

// Reads which tensors of a file count, and which of them are slices.
Result<> read_tensors(const Value& v, CheckpointFile& file, std::string_view shown) {
  const Value &counts = v["counts"], &slices = v["slices"];
  if ((!counts.is_null() && !counts.as_array()) || (!slices.is_null() && !slices.as_object()))
    return unsound(shown, fmt::format("what counts of the file '{}' is not a list", file.name));
  if (counts.as_array()) {
    file.counts.emplace();
    for (const Value& name : *counts.as_array()) {
      if (!name.as_string()) return unsound(shown, fmt::format("file '{}' names no tensor that counts", file.name));
      file.counts->push_back(*name.as_string());
    }
  }
  if (!slices.as_object()) return success();
  for (const auto& [tensor, rows] : *slices.as_object()) {
    const Slice slice{rows.integer("first", -1), rows.integer("of", -1)};
    if (slice.first < 0 || slice.of <= slice.first)
      return unsound(shown, fmt::format("file '{}' has no rows of the tensor '{}'", file.name, tensor));
    file.slices[tensor] = slice;
  }
  return success();
}

Result<CheckpointFile> file_from(const Value& v, std::string_view shown) {
  CheckpointFile file;
  file.name = v.text("name");
  file.fingerprint = {v.integer("size_bytes", -1), v.text("xxh3"), v.text("sha256")};
  if (!is_checkpoint_file_name(file.name)) return unsound(shown, fmt::format("'{}' is not a file's name", file.name));
  const store::Fingerprint& print = file.fingerprint;
  if (print.size_bytes < 0 || !is_hex(print.xxh3, 32) || !(print.sha256.empty() || is_hex(print.sha256, 64)))
    return unsound(shown, fmt::format("file '{}' has no size or no digest", file.name));
  file.part = v.text("part");
  if (!file.part.empty() && !is_checkpoint_file_name(file.part + std::string(suffix)))
    return unsound(shown, fmt::format("'{}' is not the name of a part of the state", file.part));
  RILLE_CHECK(read_tensors(v, file, shown));
  return file;
}

}  // namespace

bool is_checkpoint_file_name(std::string_view name) {
  return name.size() > suffix.size() && name.size() < 200 && name.ends_with(suffix) && name.front() != '.' &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

std::string CheckpointFile::part_name() const {
  return part.empty() ? name.substr(0, name.size() - suffix.size()) : part;
}

std::string Manifest::to_json() const {
  const bool plain = std::all_of(files.begin(), files.end(), [](const CheckpointFile& f) { return f.plain(); });
  Value v;
  v.set("format", format_name).set("version", plain ? plain_version : format_version);
  v.set("step", step).set("generation", generation).set("epoch", epoch).set("created_us", created_us);
  v.set("cursor", cursor).set("rng", rng).set("schedule", schedule).set("metadata", metadata);
  Value::Array list;
  for (const CheckpointFile& file : files) list.push_back(file_value(file));
  v.set("files", std::move(list));
  v.set("digest", store::fingerprint(v.to_json()).xxh3);
  return v.to_json_pretty() + "\n";
}

Result<Manifest> Manifest::from_json(std::string_view text, std::string_view shown) {
  auto parsed = Value::from_json(text);
  if (!parsed) return unsound(shown, parsed.error().message);
  Value v = std::move(*parsed);
  if (v.text("format") != format_name) return unsound(shown, "its format is not Rille's");
  if (v.integer("version") < plain_version || v.integer("version") > format_version)
    return unsound(shown, fmt::format("its version is {} and this build reads {} to {}", v.integer("version"),
                                      plain_version, format_version));
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
