#include "runtime/compute/data/checkpoint_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace rille::data {

namespace {

Error damaged_files(const std::string& directory, const std::string& why) {
  return make_error(ErrorKind::integrity, fmt::format("checkpoint '{}' is damaged: {}", directory, why),
                    "load an earlier checkpoint, or restore this one from a backup");
}

std::string add_file(StatePart& part, const OpenFile& file, const CheckpointFile& listed) {
  std::set<std::string> left;
  if (listed.counts) left.insert(listed.counts->begin(), listed.counts->end());
  for (const store::TensorEntry& entry : file->tensors()) {
    if (listed.counts && !left.erase(entry.name)) continue;
    const auto slice = listed.slices.find(entry.name);
    const bool whole = slice == listed.slices.end();
    StateTensor& tensor = part[entry.name];
    tensor.pieces.push_back({file, &entry, whole ? Slice() : slice->second});
    if (!whole && entry.shape.empty()) return fmt::format("'{}' of '{}' has no rows", entry.name, listed.name);
    if (tensor.pieces.size() > 1 && (whole || tensor.pieces.front().slice.of != slice->second.of))
      return fmt::format("'{}' is in two files", entry.name);
  }
  return left.empty() ? "" : fmt::format("'{}' is not in '{}'", *left.begin(), listed.name);
}

// Puts the pieces of a tensor in order. Returns what is wrong with them; "" if nothing.
std::string join(const std::string& name, StateTensor& tensor) {
  std::sort(tensor.pieces.begin(), tensor.pieces.end(),
            [](const auto& a, const auto& b) { return a.slice.first < b.slice.first; });
  const StateTensor::Piece& head = tensor.pieces.front();
  tensor.dtype = head.entry->dtype;
  tensor.shape = head.entry->shape;
  if (head.slice == Slice() && tensor.pieces.size() == 1) return "";
  std::int64_t rows = 0;
  for (const StateTensor::Piece& piece : tensor.pieces) {
    const std::vector<std::int64_t>& shape = piece.entry->shape;
    const bool fits = piece.entry->dtype == tensor.dtype && shape.size() == tensor.shape.size() &&
                      std::equal(shape.begin() + 1, shape.end(), tensor.shape.begin() + 1);
    if (!fits) return fmt::format("the slices of '{}' do not fit together", name);
    if (piece.slice.first != rows)
      return fmt::format("row {} of '{}' is missing, or in two files", std::min(rows, piece.slice.first), name);
    if (__builtin_add_overflow(rows, shape.front(), &rows)) return fmt::format("'{}' has too many rows", name);
  }
  if (rows != head.slice.of) return fmt::format("'{}' has {} of {} rows", name, rows, head.slice.of);
  tensor.shape.front() = rows;
  return "";
}

}  // namespace

StatePart part_of(const OpenFile& file) {
  StatePart out;
  for (const store::TensorEntry& entry : file->tensors())
    out[entry.name] = StateTensor{entry.dtype, entry.shape, {{file, &entry}}};
  return out;
}

Result<std::map<std::string, StatePart>> open_parts(const Checkpoint& checkpoint) {
  std::map<std::string, StatePart> out;
  for (const CheckpointFile& listed : checkpoint.manifest.files) {
    RILLE_TRY(store::SafetensorsFile opened, checkpoint.open(listed.name, Verify::sizes));
    const auto file = std::make_shared<const store::SafetensorsFile>(std::move(opened));
    const std::string why = add_file(out[listed.part_name()], file, listed);
    if (!why.empty()) return damaged_files(checkpoint.directory, why);
  }
  for (auto& [name, part] : out)
    for (auto& [tensor, joined] : part)
      if (const std::string why = join(tensor, joined); !why.empty()) return damaged_files(checkpoint.directory, why);
  return out;
}

}  // namespace rille::data
