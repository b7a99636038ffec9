// ImageIndex: where the images of a data set are and what their labels are; the images stay where they are, and each
// is read by one positioned read. Built in one pass over
// - a folder of class folders with JPEG and PNG files (torchvision's ImageFolder: classes sorted by name, from 0),
// - WebDataset: a .tar file, or a folder of them; a sample is KEY.jpg (.jpeg, .png) and KEY.cls (or the field `label`
//   of KEY.json). With dataset.json, its shards and class names,
// - MosaicML's MDS: a folder with index.json and uncompressed shards.
// Reading is const and any thread may do it.
//
// Errors: io (missing, unreadable), invalid (no images, no labels, a compressed shard), integrity (a shard is damaged:
// shards come from outside, and every size in them is checked against the file), memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compute/data/pace.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/base/use.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::data {

constexpr std::uint64_t image_bytes_max = 256 << 20;
constexpr std::uint64_t images_max = 200'000'000;

// A file that is read at positions.
class ReadableFile {
 public:
  // Error io: it is missing or not a regular file.
  static Result<ReadableFile> open(const std::string& path);
  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  // Fills `into`. Error integrity: the range is not within the file; io.
  Result<> read(std::uint64_t at, char* into, std::uint64_t bytes) const;

 private:
  std::string path_;
  store::Fd fd_;
  std::uint64_t size_ = 0;
};

class ImageIndex {
 public:
  // labels: the field of KEY.json or the column of MDS that has the label; "": `label`, or the only column of whole
  // numbers.
  static Result<ImageIndex> open(const std::string& path, const std::string& labels, const Asked& asked);

  std::uint64_t size() const { return entries_.size(); }
  std::int32_t label(std::uint64_t i) const { return entries_[i].label; }
  std::int64_t class_count() const { return class_count_; }
  const std::vector<std::string>& class_names() const { return class_names_; }  // empty if they are not known
  const std::string& digest() const { return digest_; }                         // of all names, places and labels
  std::string name(std::uint64_t i) const;                                      // for messages
  // The bytes of image i, which `held` counts in `memory` (may be null). Error integrity: it is larger than
  // image_bytes_max, or its file has become shorter; memory.
  Result<std::string> read(std::uint64_t i, const std::shared_ptr<MemoryUse>& memory, MemoryHeld& held) const;

  // For the readers of shards. `name` is relative to the folder of the data set.
  Result<> add_file(std::string_view name);
  // An image of the file that was added last; bytes = 0: the whole file.
  Result<> add(std::uint64_t at, std::uint64_t bytes, std::int64_t label);
  const std::string& folder() const { return folder_; }
  const std::string& labels() const { return labels_; }

 private:
  struct Entry {
    std::uint64_t at, bytes;
    std::uint32_t file;
    std::int32_t label;
  };
  ImageIndex(std::string folder, std::string labels, const Asked& asked)
      : folder_(std::move(folder)), labels_(std::move(labels)), asked_(asked) {}
  Result<> add_tar_files(const std::vector<std::string>& names);
  Result<> add_class_folders();
  Result<> add_class_folder(const std::string& name, std::int64_t label);
  Result<> make_room(std::size_t bytes);
  std::string file_name(std::uint32_t file) const;
  void finish();

  std::string folder_, labels_;
  Asked asked_;  // while the index is built
  std::vector<Entry> entries_;
  std::string names_;                // of all files, one after the other
  std::vector<std::uint64_t> ends_;  // of each name
  std::vector<std::string> class_names_;
  std::int64_t class_count_ = 0;
  std::size_t room_ = 0, used_ = 0;  // bytes that were asked for
  std::string digest_;
};

// A name from outside, for a message: short, and without control characters.
std::string shown_name(std::string_view name);

// Whether the name ends as that of an image that can be decoded, in letters of either case.
bool is_image_name(std::string_view name);

// Add the images of a tar file, and of all shards that `folder`/index.json names.
Result<> index_tar(ImageIndex& index, const std::string& name, const Asked& asked);
Result<> index_mds(ImageIndex& index, const Asked& asked);

}  // namespace rille::data
