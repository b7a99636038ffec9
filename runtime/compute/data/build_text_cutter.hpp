// Cuts text files into pieces for build_text: whole lines of a JSONL file; of any other file, parts of its one
// document. Where the cuts are depends on the files and the size alone. A piece has at most a few MB, whatever the
// files contain. Private to runtime/compute/data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/compute/data/build.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::data {

// Where a piece begins.
struct TextPlace {
  std::size_t file = 0;
  std::int64_t offset = 0, line = 1;

  Value to_value() const;
  static TextPlace from_value(const Value& v);
};

struct TextPiece {
  std::string text;
  TextPlace begin, next;
  bool lines = false;  // JSONL: a document for each line
  MemoryHeld held;
};

class TextCutter {
 public:
  static constexpr std::size_t line_bytes_max = 64 << 20;  // of a JSONL file
  static constexpr std::size_t part_bytes_max = 4 << 20;   // a text is cut here if it has no line end before

  // piece_bytes: a piece ends at the first line end after so many. lines_apart: as Tokenizer::lines_apart; else parts
  // of a text are as long as possible.
  TextCutter(const std::vector<BuildSource>& files, std::size_t piece_bytes, bool lines_apart, TextPlace from)
      : files_(files), piece_bytes_(piece_bytes), lines_apart_(lines_apart), at_(from) {}

  // nullopt: there is no more. integrity: a file has another size than when it was hashed. invalid: a line is too long.
  Result<std::optional<TextPiece>> next();

 private:
  Result<> fill(std::size_t bytes);
  Result<std::size_t> end_of_lines();
  Result<std::size_t> end_of_part();
  Result<std::size_t> end_of_piece() { return lines() ? end_of_lines() : end_of_part(); }
  bool lines() const;
  const std::string& path() const { return files_[at_.file].path; }

  const std::vector<BuildSource>& files_;
  std::size_t piece_bytes_;
  bool lines_apart_;
  TextPlace at_;        // of the first byte of text_
  store::Fd fd_;        // at the end of text_; not valid: the file is not open
  bool ended_ = false;  // nothing is left behind text_
  std::string text_;
};

}  // namespace rille::data
