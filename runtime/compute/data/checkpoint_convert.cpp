#include "runtime/compute/data/checkpoint_convert.hpp"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "runtime/compute/data/checkpoint_parts.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/store/pages.hpp"

namespace rille::data {

namespace fs = std::filesystem;

namespace {

constexpr const char* kept_part = "model";
constexpr const char* index_name = "model.safetensors.index.json";

// Reads some bytes of a tensor out of its pieces, which lie one after another.
Result<> read_pieces(const StateTensor& tensor, std::uint64_t offset, char* out, std::size_t size) {
  for (const StateTensor::Piece& piece : tensor.pieces) {
    const std::string_view bytes = piece.bytes();
    if (offset >= bytes.size()) {
      offset -= bytes.size();
      continue;
    }
    const std::string_view part = bytes.substr(offset, size);
    RILLE_CHECK(store::check_pages(part, piece.entry->name));
    std::memcpy(out, part.data(), part.size());
    store::forget_pages(part);
    out += part.size();
    size -= part.size();
    offset = 0;
    if (size == 0) break;
  }
  return success();
}

using Sources = std::vector<store::TensorSource>;

// `state` must outlive the sources.
Result<Sources> sources_of(const std::map<std::string, StatePart>& state) {
  std::map<std::string, std::string> owners;
  Sources out;
  for (const auto& [part, tensors] : state)
    for (const auto& [name, tensor] : tensors) {
      const std::string full = part == kept_part ? name : part + "." + name;
      const auto [owner, is_new] = owners.emplace(full, part);
      if (!is_new)
        return make_error(
            ErrorKind::invalid,
            fmt::format("the tensor '{}' would be there twice: in '{}' and in '{}'", full, owner->second, part),
            "give this part of the state another name when it is saved: state = { other = model }");
      store::TensorSource source{full, tensor.dtype, tensor.shape, nullptr, nullptr};
      source.read = [from = &tensor](std::uint64_t offset, char* to, std::size_t size) {
        return read_pieces(*from, offset, to, size);
      };
      out.push_back(std::move(source));
    }
  return out;
}

std::int64_t bytes_of(const store::TensorSource& source) {
  const Result<std::uint64_t> bytes = store::tensor_bytes(source.dtype, source.shape);
  return bytes ? static_cast<std::int64_t>(*bytes) : 0;
}

std::vector<Sources> groups_of(Sources all, std::int64_t file_bytes_max) {
  std::vector<Sources> out(1);
  std::int64_t used = 0;
  for (store::TensorSource& source : all) {
    const std::int64_t bytes = bytes_of(source);
    if (!out.back().empty() && bytes > file_bytes_max - used) {
      out.emplace_back();
      used = 0;
    }
    used += bytes;
    out.back().push_back(std::move(source));
  }
  return out;
}

const store::StringMap metadata = {{"format", "pt"}};  // transformers refuses a file without it

Result<Converted> write_folder(const std::vector<Sources>& groups, const std::string& folder) {
  Converted out;
  Value weight_map = Value::Object();
  std::int64_t total_bytes = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, groups.size());
    RILLE_TRY(const store::Fingerprint made, store::write_safetensors(folder + "/" + name, groups[i], metadata));
    out.size_bytes += made.size_bytes;
    for (const store::TensorSource& source : groups[i]) {
      weight_map.set(source.name, name);
      total_bytes += bytes_of(source);
    }
  }
  out.files = static_cast<std::int64_t>(groups.size());
  Value index;
  index.set("metadata", Value().set("total_size", total_bytes)).set("weight_map", std::move(weight_map));
  RILLE_CHECK(store::write_file_atomic(folder + "/" + index_name, index.to_json_pretty() + "\n"));
  return out;
}

// Makes the folder beside its place, so that it appears with all files.
Result<Converted> make_folder(const std::vector<Sources>& groups, const std::string& to) {
  std::error_code failed;
  if (fs::exists(to, failed) && !fs::is_empty(to, failed)) {
    if (failed) return errno_error("cannot write the folder", to, failed.value());
    return make_error(ErrorKind::invalid, fmt::format("the folder '{}' is not empty", to),
                      "readers take every file of the folder: name a new one");
  }
  const std::string temporary = fmt::format("{}.tmp-{}", to, random_hex(6));
  RILLE_CHECK(store::make_directories(temporary));
  Result<Converted> made = write_folder(groups, temporary);
  if (made) {
    fs::rename(temporary, to, failed);
    if (failed) made = errno_error("cannot rename into place", to, failed.value());
  }
  if (!made) {
    (void)store::remove_tree(temporary);
    return made;
  }
  RILLE_CHECK(store::sync_directory(store::parent_path(to)));
  return made;
}

}  // namespace

Result<Converted> convert_checkpoint(const Checkpoint& from, const std::string& to, std::int64_t file_bytes_max) {
  RILLE_TRY(const auto state, open_parts(from));
  RILLE_TRY(Sources sources, sources_of(state));
  const auto tensors = static_cast<std::int64_t>(sources.size());
  Converted out;
  if (to.ends_with(".safetensors")) {
    RILLE_TRY(const store::Fingerprint made, store::write_safetensors(to, sources, metadata));
    out.files = 1;
    out.size_bytes = made.size_bytes;
  } else {
    std::string folder = to;
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    RILLE_TRY(out, make_folder(groups_of(std::move(sources), file_bytes_max), folder));
  }
  out.tensors = tensors;
  return out;
}

}  // namespace rille::data
