#include "runtime/compute/data/image_index.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>

#include "runtime/compute/data/dataset.hpp"
#include "runtime/core/base/text.hpp"
#include "runtime/core/store/hash.hpp"

namespace rille::data {

namespace {

namespace fs = std::filesystem;

Error invalid(std::string message, std::string hint) {
  return make_error(ErrorKind::invalid, std::move(message), std::move(hint));
}

bool is_visible(const fs::path& path) { return path.filename().native().front() != '.'; }

// The visible entries of a folder, sorted by name.
Result<std::vector<fs::directory_entry>> entries_of(const std::string& folder, const Asked& asked) {
  std::error_code failed;
  std::vector<fs::directory_entry> out;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    if (out.size() % 1000 == 0) asked.looks();
    if (out.size() >= images_max)
      return invalid(fmt::format("the folder '{}' has more than {} entries", folder, images_max),
                     "name a folder with fewer images");
    if (is_visible(it->path())) out.push_back(*it);
  }
  if (failed) return errno_error("cannot list", folder, failed.value());
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.path() < b.path(); });
  return out;
}

}  // namespace

Result<ReadableFile> ReadableFile::open(const std::string& path) {
  ReadableFile file;
  file.path_ = path;
  file.fd_ = store::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe would block the open
  if (!file.fd_.valid()) return errno_error("cannot open", path, errno);
  struct stat status;
  if (::fstat(file.fd_.get(), &status) != 0) return errno_error("cannot read", path, errno);
  if (!S_ISREG(status.st_mode)) return make_error(ErrorKind::io, fmt::format("'{}' is not a regular file", path));
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

Result<> ReadableFile::read(std::uint64_t at, char* into, std::uint64_t bytes) const {
  const auto short_file = [&] {
    return make_error(
        ErrorKind::integrity,
        fmt::format("'{}' is damaged: it should have {} bytes at {}, but it has {} in all", path_, bytes, at, size_),
        "fetch it again: it is truncated or was changed");
  };
  if (at > size_ || bytes > size_ - at) return short_file();
  for (std::uint64_t done = 0; done < bytes;) {
    const ssize_t n = ::pread(fd_.get(), into + done, bytes - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("cannot read", path_, errno);
    if (n == 0) return short_file();
    done += static_cast<std::uint64_t>(n);
  }
  return success();
}

std::string shown_name(std::string_view name) {
  constexpr std::size_t shown_max = 200;
  std::string out(name.substr(0, shown_max));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return name.size() > shown_max ? out + ".." : out;
}

bool is_image_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos) return false;
  const std::string end = lower_case(name.substr(dot + 1));
  return end == "jpg" || end == "jpeg" || end == "png";
}

Result<> ImageIndex::make_room(std::size_t bytes) {
  constexpr std::size_t step = 1 << 20;
  used_ += bytes;
  while (room_ < used_) {
    asked_.looks();
    RILLE_CHECK(asked_.needs(step));
    room_ += step;
  }
  return success();
}

Result<> ImageIndex::add_file(std::string_view name) {
  RILLE_CHECK(make_room(2 * name.size() + 2 * sizeof(std::uint64_t)));  // twice: a vector doubles when it grows
  if (ends_.size() >= images_max)
    return invalid(fmt::format("'{}' has more than {} files", folder_, images_max), "split the data set");
  names_ += name;
  ends_.push_back(names_.size());
  return success();
}

Result<> ImageIndex::add(std::uint64_t at, std::uint64_t bytes, std::int64_t label) {
  RILLE_CHECK(make_room(2 * sizeof(Entry)));
  const auto file = static_cast<std::uint32_t>(ends_.size() - 1);
  if (entries_.size() >= images_max)
    return invalid(fmt::format("'{}' has more than {} images", folder_, images_max), "split the data set");
  if (label < 0 || label >= std::numeric_limits<std::int32_t>::max())
    return make_error(ErrorKind::integrity,
                      fmt::format("'{}/{}' has the label {}", folder_, shown_name(file_name(file)), label),
                      "labels are whole numbers from 0 on, below 2^31 - 1");
  entries_.push_back({at, bytes, file, static_cast<std::int32_t>(label)});
  class_count_ = std::max(class_count_, label + 1);
  return success();
}

std::string ImageIndex::file_name(std::uint32_t file) const {
  const std::uint64_t begin = file ? ends_[file - 1] : 0;
  return names_.substr(begin, ends_[file] - begin);
}

std::string ImageIndex::name(std::uint64_t i) const {
  const Entry& entry = entries_[i];
  std::string path = folder_ + "/" + shown_name(file_name(entry.file));
  if (!entry.at) return path;
  std::uint64_t first = i;
  while (first > 0 && entries_[first - 1].file == entry.file) --first;
  if (!path.ends_with(".tar")) return fmt::format("{}, sample {} from 0", path, i - first);
  // Its header is before it; the bytes were checked when the index was made.
  char key[100];
  const auto file = ReadableFile::open(folder_ + "/" + file_name(entry.file));
  if (!file || !file->read(entry.at - 512, key, sizeof key)) return fmt::format("{}, image {} from 0", path, i - first);
  return fmt::format("{}: {}", path, shown_name(std::string_view(key, strnlen(key, sizeof key))));
}

Result<std::string> ImageIndex::read(std::uint64_t i, const std::shared_ptr<MemoryUse>& memory,
                                     MemoryHeld& held) const {
  const Entry& entry = entries_[i];
  RILLE_TRY(const ReadableFile file, ReadableFile::open(folder_ + "/" + file_name(entry.file)));
  const std::uint64_t bytes = entry.at ? entry.bytes : file.size();
  if (bytes > image_bytes_max)
    return make_error(ErrorKind::integrity,
                      fmt::format("the image '{}' has {} bytes, the limit is {}", name(i), bytes, image_bytes_max),
                      "remove it, or make it smaller");
  RILLE_TRY(held, MemoryHeld::take(memory, MemoryUse::Part::tensors, static_cast<std::int64_t>(bytes)));
  std::string out(bytes, '\0');
  RILLE_CHECK(file.read(entry.at, out.data(), bytes));
  return out;
}

Result<> ImageIndex::add_class_folder(const std::string& name, std::int64_t label) {
  const std::string root = folder_ + "/" + name;
  std::vector<std::string> found;
  std::error_code failed;
  fs::recursive_directory_iterator it(root, fs::directory_options::follow_directory_symlink, failed), end;
  constexpr int depth_max = 32;  // links to folders may go round in circles
  for (std::uint64_t seen = 1; !failed && it != end; it.increment(failed), ++seen) {
    if (seen % 1000 == 0) asked_.looks();
    if (seen > images_max || it.depth() > depth_max)
      return invalid(fmt::format("the folder '{}' has more than {} entries, or folders more than {} deep", root,
                                 images_max, depth_max),
                     "name a folder of images only");
    const bool visible = is_visible(it->path());
    if (!visible && it->is_directory(failed)) it.disable_recursion_pending();
    if (!visible || !is_image_name(it->path().native()) || !it->is_regular_file(failed)) continue;
    found.push_back(name + it->path().native().substr(root.size()));
    RILLE_CHECK(make_room(found.back().size() + sizeof(std::string)));
  }
  if (failed) return errno_error("cannot list", root, failed.value());
  if (found.empty())
    return invalid(fmt::format("the class folder '{}' has no JPEG or PNG file", root),
                   "each folder inside of the data set is a class with at least one image");
  std::sort(found.begin(), found.end());
  for (const std::string& file : found) {
    RILLE_CHECK(add_file(file));
    RILLE_CHECK(add(0, 0, label));
  }
  return success();
}

Result<> ImageIndex::add_class_folders() {
  RILLE_TRY(const auto found, entries_of(folder_, asked_));
  std::error_code failed;
  for (const auto& entry : found)
    if (entry.is_directory(failed)) class_names_.push_back(entry.path().filename());
  if (class_names_.empty())
    return invalid(fmt::format("'{}' has neither class folders, nor .tar shards, nor the index.json of MDS", folder_),
                   "put the images of each class into a folder of their own");
  for (std::size_t i = 0; i < class_names_.size(); ++i)
    RILLE_CHECK(add_class_folder(class_names_[i], static_cast<std::int64_t>(i)));
  return success();
}

Result<> ImageIndex::add_tar_files(const std::vector<std::string>& names) {
  RILLE_TRY(const auto built, open_dataset(folder_, "images", asked_.room));
  if (!built) {
    for (const std::string& name : names) RILLE_CHECK(index_tar(*this, name, asked_));
    return success();
  }
  for (const Shard& shard : built->shards) RILLE_CHECK(index_tar(*this, shard.path, asked_));
  const Value::Array* classes = built->facts["class_names"].as_array();
  if (!classes || static_cast<std::int64_t>(classes->size()) != class_count_) return success();
  for (const Value& name : *classes) class_names_.push_back(name.as_string() ? *name.as_string() : std::string());
  return success();
}

void ImageIndex::finish() {
  store::Hasher hasher;
  for (const Entry& e : entries_) hasher.update(fmt::format("{}:{}:{}:{};", e.file, e.at, e.bytes, e.label));
  std::uint64_t begin = 0;
  for (const std::uint64_t end : ends_) {
    hasher.update(fmt::format("{}:", end - begin));
    hasher.update(std::string_view(names_).substr(begin, end - begin));
    begin = end;
  }
  digest_ = hasher.finish().xxh3;
  asked_ = {};
}

Result<ImageIndex> ImageIndex::open(const std::string& path, const std::string& labels, const Asked& asked) {
  std::error_code failed;
  const fs::path given(path);
  const bool is_folder = fs::is_directory(given, failed);
  ImageIndex index(is_folder ? path : store::parent_path(path), labels, asked);
  if (!is_folder) {
    if (fs::exists(given, failed) && given.extension() != ".tar")
      return invalid(fmt::format("'{}' is not a data set of images", path),
                     "name a folder of class folders, a folder of MDS or .tar shards, or a .tar file");
    RILLE_CHECK(index_tar(index, given.filename(), asked));
  } else if (fs::exists(given / "index.json", failed)) {
    RILLE_CHECK(index_mds(index, asked));
  } else {
    std::vector<std::string> tar_files;
    RILLE_TRY(const auto found, entries_of(path, asked));
    for (const auto& entry : found)
      if (entry.path().extension() == ".tar") tar_files.push_back(entry.path().filename());
    RILLE_CHECK(tar_files.empty() ? index.add_class_folders() : index.add_tar_files(tar_files));
  }
  if (index.entries_.empty())
    return invalid(fmt::format("'{}' has no images", path), "samples are KEY.jpg, KEY.jpeg or KEY.png with KEY.cls");
  index.finish();
  return index;
}

}  // namespace rille::data
