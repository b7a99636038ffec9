#include "runtime/workflow/transfer/latest_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/store/beneath.hpp"

namespace rille::transfer {

namespace {

constexpr std::string_view format_name = "rille-latest";
constexpr int plain_version = 1, format_version = 2;  // 1: every file is in its checkpoint's folder
constexpr std::int64_t number_max = std::int64_t{1} << 53;
constexpr std::size_t mark_digits = 8, text_bytes_max = 4096;

Error unsound(std::string_view shown, std::string_view why) {
  return make_error(ErrorKind::integrity, fmt::format("'{}' is not a valid list of checkpoints: {}", shown, why),
                    "restore an earlier version of this object; or delete it to begin anew: the checkpoints beside it "
                    "stay until then");
}

bool is_hex(std::string_view text, std::size_t size) {
  return text.size() == size && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Reads a number of decimal digits at the start of `text`, and removes it and `before` from there. -1: there is none.
std::int64_t take_number(std::string_view& text, std::string_view before) {
  if (!text.starts_with(before)) return -1;
  text.remove_prefix(before.size());
  std::int64_t out = -1;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (failed != std::errc() || out < 0 || out > number_max) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return out;
}

Value to_value(const StoredCheckpoint& c) {
  Value::Array files;
  for (const StoredFile& f : c.files) {
    Value file = Value().set("name", f.name).set("size_bytes", f.size_bytes).set("sha256", f.sha256);
    if (!f.at.empty()) file.set("at", f.at);
    files.push_back(std::move(file));
  }
  Value v;
  v.set("step", c.step).set("generation", c.generation).set("epoch", c.epoch);
  v.set("folder", c.folder).set("directory", c.directory).set("files", std::move(files));
  return v;
}

Result<StoredFile> file_from(const Value& v, std::string_view shown) {
  StoredFile out{v.text("name"), v.integer("size_bytes", -1), v.text("sha256"), v.text("at")};
  if (!is_stored_file_name(out.name)) return unsound(shown, fmt::format("'{}' is not a file's name", out.name));
  if (out.size_bytes < 0 || out.size_bytes > number_max || !is_hex(out.sha256, 64))
    return unsound(shown, fmt::format("file '{}' has no size or no SHA-256", out.name));
  const std::size_t folder = out.at.find('/') + 1;
  if (!out.at.empty() &&
      (!parse_stored_folder(out.at.substr(0, folder)) || !is_stored_file_name(out.at.substr(folder))))
    return unsound(shown, fmt::format("'{}' is not a file of a checkpoint", out.at.substr(0, text_bytes_max)));
  return out;
}

Result<StoredCheckpoint> checkpoint_from(const Value& v, std::string_view shown) {
  const std::string folder = v.text("folder");
  Result<StoredCheckpoint> named = parse_stored_folder(folder);
  if (!named) return unsound(shown, named.error().message);
  StoredCheckpoint out = std::move(*named);
  if (v.integer("step", -1) != out.step || v.integer("generation", -1) != out.generation ||
      v.integer("epoch", -1) != out.epoch)
    return unsound(shown, fmt::format("the folder '{}' is of another checkpoint", folder));
  out.directory = v.text("directory");
  if (!is_checkpoint_directory(out.directory, out.step))
    return unsound(shown, fmt::format("'{}' is not the directory of step {} on a machine",
                                      out.directory.substr(0, text_bytes_max), out.step));
  const Value::Array* files = v["files"].as_array();
  if (!files || files->empty() || files->size() > stored_files_max)
    return unsound(shown, fmt::format("the checkpoint in '{}' has no list of files", folder));
  for (const Value& entry : *files) {
    RILLE_TRY(StoredFile file, file_from(entry, shown));
    const bool twice =
        std::any_of(out.files.begin(), out.files.end(), [&](const auto& f) { return f.name == file.name; });
    if (twice) return unsound(shown, fmt::format("it names the file '{}' twice", file.name));
    out.files.push_back(std::move(file));
  }
  if (out.files.back().name != manifest_name)
    return unsound(shown, fmt::format("the checkpoint in '{}' has no manifest", folder));
  return out;
}

}  // namespace

bool is_checkpoint_directory(std::string_view path, std::int64_t step) {
  return store::check_relative(path) && path.substr(path.rfind('/') + 1) == fmt::format("step-{:08}", step);
}

bool is_stored_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name[0] != '.' && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

std::string stored_folder(const StoredCheckpoint& c, std::string_view mark) {
  return fmt::format("step-{:08}-g{}-e{}-{}/", c.step, c.generation, c.epoch, mark);
}

Result<StoredCheckpoint> parse_stored_folder(std::string_view folder) {
  StoredCheckpoint out;
  std::string_view left = folder;
  out.step = take_number(left, "step-");
  out.generation = take_number(left, "-g");
  out.epoch = take_number(left, "-e");
  out.folder = folder;
  if (out.step < 0 || out.generation < 0 || out.epoch < 0 || left.size() != mark_digits + 2 || left.front() != '-' ||
      left.back() != '/' || !is_hex(left.substr(1, mark_digits), mark_digits) ||
      stored_folder(out, left.substr(1, mark_digits)) != folder)
    return make_error(ErrorKind::invalid,
                      fmt::format("'{}' is not the folder of a checkpoint", folder.substr(0, text_bytes_max)),
                      "such a folder reads step-00000050-g1-e1-1f3a9c02/");
  return out;
}

std::string Latest::to_json() const {
  bool plain = true;
  for (const StoredCheckpoint& c : checkpoints)
    for (const StoredFile& f : c.files) plain = plain && f.at.empty();
  Value v;
  v.set("format", format_name).set("version", plain ? plain_version : format_version);
  v.set("writer", writer).set("base", base);
  Value::Array list;
  for (const StoredCheckpoint& c : checkpoints) list.push_back(to_value(c));
  v.set("checkpoints", std::move(list));
  v.set("digest", sha256_hex(v.to_json()));
  return v.to_json_pretty() + "\n";
}

Result<Latest> read_latest(std::string_view text, std::string_view shown) {
  Result<Value> parsed = Value::from_json(text);
  if (!parsed) return unsound(shown, parsed.error().message);
  Value v = std::move(*parsed);
  if (v.text("format") != format_name) return unsound(shown, "its format is not Rille's");
  if (v.integer("version") < plain_version || v.integer("version") > format_version)
    return unsound(shown, fmt::format("its version is {} and this build reads {} to {}", v.integer("version"),
                                      plain_version, format_version));
  const std::string digest = v.text("digest");
  v.as_object()->erase("digest");
  if (digest != sha256_hex(v.to_json())) return unsound(shown, "its digest does not match: it was cut off or edited");
  Latest out;
  out.writer = v.text("writer");
  out.base = v.integer("base", -1);
  if (out.writer.size() > text_bytes_max || out.base < 0 || out.base > number_max)
    return unsound(shown, "it has no writer");
  const Value::Array* list = v["checkpoints"].as_array();
  if (!list || list->empty() || list->size() > stored_checkpoints_max)
    return unsound(shown, fmt::format("it names no checkpoint, or more than {}", stored_checkpoints_max));
  for (const Value& entry : *list) {
    RILLE_TRY(StoredCheckpoint one, checkpoint_from(entry, shown));
    out.checkpoints.push_back(std::move(one));
  }
  return out;
}

Result<std::string> text_of_latest(Latest& latest, std::string_view shown) {
  std::string text = latest.to_json();
  while (text.size() > static_cast<std::size_t>(latest_bytes_max) && latest.checkpoints.size() > 1) {
    latest.checkpoints.resize(latest.checkpoints.size() - std::max<std::size_t>(1, latest.checkpoints.size() / 16));
    text = latest.to_json();
  }
  Result<Latest> read = read_latest(text, shown);
  if (read && text.size() <= static_cast<std::size_t>(latest_bytes_max)) return text;
  const std::string why = read ? fmt::format("its list of files has more than {} bytes", latest_bytes_max)
                               : std::move(read).error().message;
  return make_error(
      ErrorKind::invalid,
      fmt::format("the checkpoint of step {} cannot be kept in a store: {}", latest.checkpoints.front().step, why),
      "write it with rille.checkpoint, to a directory below the work directory such as \"checkpoints\"");
}

void retain(std::vector<StoredCheckpoint>& newest_first, const StoreRetention& rule) {
  const auto newest = static_cast<std::size_t>(std::max(rule.newest, 1));
  std::vector<StoredCheckpoint> kept;
  for (std::size_t i = 0; i < newest_first.size() && kept.size() < stored_checkpoints_max; ++i)
    if (i < newest || (rule.every > 0 && newest_first[i].step % rule.every == 0))
      kept.push_back(std::move(newest_first[i]));
  newest_first = std::move(kept);
}

}  // namespace rille::transfer
