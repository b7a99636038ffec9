#include "runtime/compute/data/build.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "runtime/compute/data/token_files.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/text.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::data {

namespace {

namespace fs = std::filesystem;

Error bad_build(std::string message, std::string hint = {}) {
  return make_error(ErrorKind::invalid, "data build: " + std::move(message), std::move(hint));
}

std::string extension_of(const std::string& path) {
  const std::string text = lower_case(fs::path(path).extension().string());
  return text.empty() ? text : text.substr(1);
}

const Builder* builder_of(std::string_view kind) {
  for (const Builder& b : builders())
    if (b.kind == kind) return &b;
  return nullptr;
}

std::vector<std::string> kinds() {
  std::vector<std::string> out;
  for (const Builder& b : builders()) out.emplace_back(b.kind);
  return out;
}

Result<const Builder*> chosen(const Value& options, const std::vector<std::string>& files) {
  const std::string kind = options.text("kind");
  const std::string names = fmt::format("kinds are {}", fmt::join(kinds(), ", "));
  if (!kind.empty()) {
    const Builder* found = builder_of(kind);
    if (found) return found;
    return bad_build(fmt::format("there is no kind '{}'", kind), names);
  }
  const Builder* found = nullptr;
  for (const std::string& file : files) {
    for (const Builder& b : builders()) {
      if (std::find(b.extensions.begin(), b.extensions.end(), extension_of(file)) == b.extensions.end()) continue;
      if (found && found != &b)
        return bad_build(fmt::format("the sources are of the kinds '{}' and '{}' ('{}')", found->kind, b.kind, file),
                         "name the kind, or the files of one kind only; " + names);
      found = &b;
    }
  }
  if (found) return found;
  return bad_build(fmt::format("the name '{}' does not say what kind of data it has", files.front()),
                   "name the kind; " + names);
}

Result<> check_names(const Value& options, const Builder& builder) {
  std::vector<std::string> known{"sources", "to", "kind"};
  known.insert(known.end(), builder.options.begin(), builder.options.end());
  for (const auto& [name, value] : *options.as_object()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string meant = did_you_mean(name, known);
    return bad_build(
        fmt::format("the kind '{}' has no option '{}'", builder.kind, name),
        meant.empty() ? fmt::format("it has: {}", fmt::join(known, ", ")) : fmt::format("did you mean '{}'?", meant));
  }
  return success();
}

Result<std::vector<std::string>> sources_in(const Value& options) {
  const Value::Array* given = options["sources"].as_array();
  if (!given || given->empty()) return bad_build("no source is given", "name files or folders");
  std::vector<std::string> out;
  for (const Value& one : *given) {
    if (!one.as_string()) return bad_build("a source is no path but " + one.to_json());
    std::error_code failed;
    if (!fs::exists(*one.as_string(), failed))
      return make_error(ErrorKind::io, fmt::format("data build: there is no source '{}'", *one.as_string()),
                        "name a file or a folder that exists");
    out.push_back(*one.as_string());
  }
  return out;
}

Result<std::vector<std::string>> files_in(const std::vector<std::string>& sources, const BuildContext& context) {
  std::vector<std::string> out;
  for (const std::string& one : sources) {
    RILLE_TRY(const auto files, files_of(one, context.look));
    out.insert(out.end(), files.begin(), files.end());
  }
  return out;
}

// Some file of the sources. It tells whether they are a folder that a builder lists itself, which may be too large to
// be listed here.
std::string some_file(const std::vector<std::string>& sources) {
  std::error_code failed;
  for (const std::string& source : sources) {
    if (!fs::is_directory(source, failed)) return source;
    for (fs::recursive_directory_iterator it(source, failed), end; !failed && it != end; it.increment(failed)) {
      if (it->path().filename().native().front() == '.') it.disable_recursion_pending();
      else if (it->is_regular_file(failed)) return it->path();
    }
  }
  return {};
}

// Hashes a source in pieces, so that it can be interrupted.
Result<BuildSource> read_source(const std::string& path, const BuildContext& context) {
  constexpr std::size_t read_at_once = 4 << 20;
  store::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("cannot open", path, errno);
  store::Hasher hasher;
  std::string piece(read_at_once, '\0');
  for (;;) {
    context.looks();
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("cannot read", path, errno);
    if (got == 0) break;
    hasher.update(std::string_view(piece).substr(0, static_cast<std::size_t>(got)));
  }
  const store::Fingerprint print = hasher.finish();
  return BuildSource{path, print.size_bytes, print.xxh3};
}

Value to_value(const std::vector<BuildSource>& sources) {
  Value::Array out;
  for (const BuildSource& s : sources)
    out.push_back(Value().set("path", s.path).set("size_bytes", s.size_bytes).set("xxh3", s.xxh3));
  return out;
}

// The error of a folder with a data set of other options or sources: it names what differs.
Error other_data(const std::string& to, const Dataset& there, const Dataset& plan) {
  std::vector<std::string> differ;
  if (there.kind != plan.kind) differ.push_back(fmt::format("kind: there '{}', here '{}'", there.kind, plan.kind));
  for (const auto& [name, value] : *plan.options.as_object())
    if (!(there.options[name] == value))
      differ.push_back(fmt::format("{}: there {}, here {}", name, there.options[name].to_json(), value.to_json()));
  if (differ.empty()) differ.emplace_back("the sources");
  return make_error(ErrorKind::state,
                    fmt::format("data build: '{}' has a data set of other options: {}", to, fmt::join(differ, "; ")),
                    "name a new folder, or remove this one");
}

}  // namespace

const std::vector<Builder>& builders() {
  static const std::vector<Builder> all{
      {"text",
       {"txt", "text", "md", "jsonl", "ndjson"},
       {"tokenizer", "pattern", "field", "shard_tokens", "validation", "separator"},
       build_text},
      {"csv", {"csv", "tsv"}, {"missing"}, build_table},
      {"images", {"jpg", "jpeg", "png"}, {"size", "shard_bytes"}, build_images, true},
  };
  return all;
}

std::string at_line(const std::string& path, std::int64_t line) { return fmt::format("'{}' line {}", path, line); }

Result<Dataset> build_dataset(const Value& options, const BuildContext& context) {
  if (!options.as_object()) return bad_build("the options are no table", "name at least `sources` and `to`");
  BuildTask task;
  task.to = options.text("to");
  if (task.to.empty()) return bad_build("no folder is given for the data set", "name it: `to`");
  RILLE_TRY(const auto sources, sources_in(options));
  const Result<const Builder*> by_one = chosen(options, {some_file(sources)});
  const bool lists_itself = by_one && (*by_one)->lists_sources;
  std::vector<std::string> files;
  if (!lists_itself) { RILLE_TRY(files, files_in(sources, context)); }
  RILLE_TRY(const Builder* builder, lists_itself ? by_one : chosen(options, files));
  RILLE_CHECK(check_names(options, *builder));
  task.options = options;
  for (const char* name : {"sources", "to", "kind"}) task.options.as_object()->erase(name);
  if (builder->lists_sources) {
    for (const std::string& source : sources) task.sources.push_back({source, 0, ""});
    return builder->build(task, context);
  }
  constexpr std::size_t bytes_of_source = 1024;  // its path, also as a value and in the text of progress.json
  RILLE_TRY(const MemoryHeld held, context.hold(files.size() * bytes_of_source));
  std::int64_t bytes = 0;
  for (const std::string& file : files) {
    RILLE_TRY(BuildSource source, read_source(file, context));
    bytes += source.size_bytes;
    task.sources.push_back(std::move(source));
  }
  if (bytes == 0)
    return bad_build(files.size() == 1 ? fmt::format("the source '{}' is empty", files.front())
                                       : fmt::format("all {} sources are empty", files.size()),
                     "name files with data");
  RILLE_TRY(Dataset made, builder->build(task, context));
  return made;
}

// Removes what an interrupted build left: files that were being written and, beside dataset.json, progress.json.
static Result<> clean_folder(const std::string& to, bool complete) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(to, failed)) {
    const std::string name = entry.path().filename();
    if (name.find(".tmp-") != name.npos || (complete && name == progress_name))
      RILLE_CHECK(store::remove_tree(entry.path()));
  }
  return success();
}

Result<Begun> begin_dataset(const BuildTask& task, Dataset plan, const BuildContext& context) {
  plan.sources = to_value(task.sources);
  Value::Array contents{plan.kind, plan.options};
  for (const BuildSource& s : task.sources) contents.push_back(Value::Array{s.size_bytes, s.xxh3});
  plan.identity = store::fingerprint(Value(std::move(contents)).to_json()).xxh3;
  for (const char* name : {dataset_name, progress_name}) {
    std::vector<MemoryHeld> held;
    RILLE_TRY(auto found, read_dataset(task.to, name, context.room(held)));
    if (!found) continue;
    found->held = std::move(held);
    const bool complete = name == dataset_name;
    if (found->identity != plan.identity) {
      if (complete || !found->shards.empty()) return other_data(task.to, *found, plan);
      break;  // that build failed before it had finished anything
    }
    RILLE_CHECK(check_shards(task.to, *found));
    RILLE_CHECK(clean_folder(task.to, complete));
    found->kept = static_cast<int>(found->shards.size());
    return Begun{complete, std::move(*found)};
  }
  RILLE_CHECK(store::make_directories(task.to));
  std::error_code failed;
  const bool begun = fs::exists(task.to + "/" + progress_name, failed);
  for (const auto& entry : fs::directory_iterator(task.to, failed))
    if (!begun && entry.path().filename().native().find(".tmp-") == std::string::npos)
      return make_error(ErrorKind::state,
                        fmt::format("data build: the folder '{}' is not empty: it has '{}'", task.to,
                                    entry.path().filename().string()),
                        "name a new folder");
  if (failed) return errno_error("cannot list", task.to, failed.value());
  RILLE_CHECK(clean_folder(task.to, false));
  RILLE_CHECK(write_dataset(task.to, progress_name, plan, context.disk));
  return Begun{false, std::move(plan)};
}

Result<> note_progress(const BuildTask& task, const Dataset& so_far, const char* larger, const BuildContext& context) {
  if (so_far.shards.size() > shards_max)
    return bad_build(fmt::format("the data set has more than {} shards", shards_max),
                     fmt::format("build it in another folder, with larger shards: {}", larger));
  return write_dataset(task.to, progress_name, so_far, context.disk);
}

Result<> end_dataset(const BuildTask& task, const Dataset& made, const BuildContext& context) {
  RILLE_CHECK(write_dataset(task.to, dataset_name, made, context.disk));
  return store::remove_tree(task.to + "/" + progress_name);
}

Error with_kept(Error error, const Dataset& set) {
  if (error.kind == ErrorKind::io && error.hint.empty() && !set.shards.empty())
    error.hint = fmt::format("{} finished shards are kept: the same command goes on after them", set.shards.size());
  return error;
}

Error changed_source(const BuildTask& task, const std::string& path) {
  (void)store::remove_tree(task.to + "/" + progress_name);  // the other error is the one to tell
  return make_error(ErrorKind::integrity, fmt::format("'{}' was changed while it was read", path),
                    fmt::format("remove '{}', and build the data set again when nothing writes its sources", task.to));
}

}  // namespace rille::data
