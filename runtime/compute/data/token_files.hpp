// Files of token ids in common formats: raw u16 or u32 (nanoGPT's .bin), or with llm.c's header of 1024 bytes (magic
// 20240520, version 1: u16; magic 20240801, version 7: u32), which contains the number of ids. The files are
// memory-mapped, not read into memory. tokenize() makes such a file from texts.
//
// Errors: io (missing, unreadable), integrity (the header does not match the file), invalid (odd sizes).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compute/data/pace.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::data {

class TokenFile {
 public:
  // width_bytes: size of an id in a file without a header, 2 or 4; 0: 4 if the file name ends in .u32, else 2.
  static Result<TokenFile> open(const std::string& path, int width_bytes = 0);

  const std::string& path() const { return path_; }
  int width_bytes() const { return width_; }
  std::string_view ids() const { return map_.view().substr(skip_); }
  std::uint64_t count() const { return ids().size() / static_cast<std::size_t>(width_); }

 private:
  std::string path_;
  store::MappedFile map_;
  std::size_t skip_ = 0;
  int width_ = 2;
};

// llm.c's header of a file with so many ids, which must be below 2^31.
std::string token_header(int width_bytes, std::int64_t count);

// Returns a folder's visible files in sorted order, at any depth; for a file, the file itself. invalid: a folder
// without files, or with more than a million entries.
Result<std::vector<std::string>> files_of(const std::string& path, const Look& look = {});

// Encodes a text file or a folder's files with the tokenizer at the path `tokenizer` (`pattern` as for Tokenizer::open)
// into a raw file in `directory`, named by a hash of the inputs, and returns the file's path. An existing file is
// reused; a new one is written atomically. Each file of a folder is preceded by <|endoftext|> if the vocabulary has
// that token. `disk` is asked for the size of the file before it is written. Blocks; any thread.
Result<std::string> tokenize(const std::string& path, const std::string& tokenizer, const std::string& pattern,
                             const std::string& directory, const Asked& asked = {}, const Room& disk = {});

}  // namespace rille::data
