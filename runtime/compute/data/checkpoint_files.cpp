#include "runtime/compute/data/checkpoint_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

namespace rille::data {

namespace {

constexpr std::string_view file_suffix = ".safetensors", step_mark = ".step-";
constexpr std::uint64_t kept_share = 4, kept_bytes_min = 4096;  // a quarter, and not less than a file's header takes
constexpr std::size_t kept_files_max = 16;                      // of a part; each costs its stale bytes
constexpr std::size_t compared_bytes = 1 << 20;

using SourcesByName = std::map<std::string, const StateSource*>;

// What of a file of the checkpoint before is still so.
struct Unchanged {
  const CheckpointFile* file = nullptr;
  std::vector<std::string> tensors;
  std::uint64_t size_bytes = 0, in_all_bytes = 0;
  bool whole = false;  // every tensor of the file counts

  bool worth_keeping() const { return size_bytes >= kept_bytes_min && size_bytes >= in_all_bytes / kept_share; }
};

// By read(): a script may truncate the file meanwhile.
bool same_bytes(int fd, std::uint64_t offset, std::string_view bytes, std::string& buffer) {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd, buffer.data(), std::min(buffer.size(), bytes.size()), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || std::memcmp(buffer.data(), bytes.data(), static_cast<std::size_t>(got)) != 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

bool same_place(const CheckpointFile& file, const store::TensorEntry& entry, const StateSource& source) {
  const auto slice = file.slices.find(entry.name);
  const std::optional<Slice> there = slice == file.slices.end() ? std::nullopt : std::optional(slice->second);
  return there == source.slice && entry.dtype == source.tensor.dtype && entry.shape == source.tensor.shape;
}

Unchanged look_into(const Checkpoint& before, const CheckpointFile& file, const SourcesByName& sources) {
  Unchanged out;
  out.file = &file;
  const std::string path = before.directory + "/" + file.name;
  const store::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto opened = store::SafetensorsFile::open(path);
  if (!fd.valid() || !opened) return out;
  std::set<std::string> counting;
  if (file.counts) counting.insert(file.counts->begin(), file.counts->end());
  std::string buffer(compared_bytes, '\0');
  for (const store::TensorEntry& entry : opened->tensors()) {
    out.in_all_bytes += entry.end - entry.begin;
    const auto source = sources.find(entry.name);
    if (source == sources.end() || (file.counts && !counting.contains(entry.name))) continue;
    if (!same_place(file, entry, *source->second)) continue;
    const std::string_view bytes(static_cast<const char*>(source->second->tensor.data), entry.end - entry.begin);
    if (!same_bytes(fd.get(), opened->data_offset() + entry.begin, bytes, buffer)) continue;
    out.tensors.push_back(entry.name);
    out.size_bytes += bytes.size();
  }
  out.whole = out.tensors.size() == opened->tensors().size();
  return out;
}

// The name in a later checkpoint: that of the file where it was written, and the step of it.
std::string later_name(const std::string& name, std::int64_t step) {
  if (name.find(step_mark) != std::string::npos) return name;
  return fmt::format("{}{}{:08}{}", name.substr(0, name.size() - file_suffix.size()), step_mark, step, file_suffix);
}

// The files that are worth keeping, the largest first.
std::vector<Unchanged> unchanged_files(const Checkpoint& before, const std::string& part,
                                       const SourcesByName& sources) {
  std::vector<Unchanged> out;
  for (const CheckpointFile& file : before.manifest.files) {
    if (file.part_name() != part) continue;
    Unchanged found = look_into(before, file, sources);
    if (!found.worth_keeping()) continue;
    // Damage in what does not count any more would make every later checkpoint unreadable.
    const auto print = store::fingerprint_file(before.directory + "/" + file.name);
    if (print && print->xxh3 == file.fingerprint.xxh3) out.push_back(std::move(found));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Unchanged& a, const Unchanged& b) { return a.size_bytes > b.size_bytes; });
  if (out.size() > kept_files_max) out.resize(kept_files_max);
  return out;
}

// Links the files into the unfinished checkpoint. False: one could not be, and none is: the file system has no links,
// or the checkpoint before was removed meanwhile.
bool link_all(const PartFiles& to, const Checkpoint& before, const std::vector<Unchanged>& kept, bool all,
              std::vector<CheckpointFile>& out) {
  bool linked = true;
  for (const Unchanged& one : kept) {
    CheckpointFile file = *one.file;
    if (!all) {
      file.name = later_name(file.name, before.manifest.step);
      file.part = to.part;
    }
    if (!one.whole) file.counts = one.tensors;
    const std::string from = before.directory + "/" + one.file->name, path = to.directory + "/" + file.name;
    linked = is_checkpoint_file_name(file.name) && ::link(from.c_str(), path.c_str()) == 0;
    if (!linked) break;
    out.push_back(std::move(file));
  }
  if (linked) return true;
  for (const CheckpointFile& file : out) ::unlink((to.directory + "/" + file.name).c_str());
  out.clear();
  return false;
}

}  // namespace

Result<std::vector<CheckpointFile>> write_part(const PartFiles& to, const std::vector<StateSource>& tensors,
                                               const Checkpoint* before) {
  std::vector<CheckpointFile> out;
  std::set<std::string> kept;
  if (before) {
    SourcesByName sources;
    for (const StateSource& source : tensors) sources[source.tensor.name] = &source;
    const std::vector<Unchanged> unchanged = unchanged_files(*before, to.part, sources);
    for (const Unchanged& one : unchanged) kept.insert(one.tensors.begin(), one.tensors.end());
    const bool all = kept.size() == tensors.size();  // then nothing is written, and the files keep their names
    if (!link_all(to, *before, unchanged, all, out)) kept.clear();
    if (all && !out.empty()) return out;
  }
  CheckpointFile file;
  file.name =
      to.share.empty() ? to.part + std::string(file_suffix) : fmt::format("{}.{}{}", to.part, to.share, file_suffix);
  if (!to.share.empty()) file.part = to.part;
  std::vector<store::TensorSource> fresh;
  for (const StateSource& source : tensors) {
    if (kept.contains(source.tensor.name)) continue;
    fresh.push_back(source.tensor);
    if (source.slice) file.slices[source.tensor.name] = *source.slice;
  }
  RILLE_TRY(file.fingerprint, store::write_safetensors(to.directory + "/" + file.name, fresh));
  out.push_back(std::move(file));
  return out;
}

}  // namespace rille::data
