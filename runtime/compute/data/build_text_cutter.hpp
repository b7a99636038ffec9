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
  TextCutter(const BuildTask& task, const BuildContext& context, std::size_t piece_bytes, bool lines_apart,
             TextPlace from)
      : task_(task), context_(context), piece_bytes_(piece_bytes), lines_apart_(lines_apart), at_(from) {}

  // nullopt: there is no more. integrity: a file has other bytes than when it was hashed. invalid: a line is too long.
  Result<std::optional<TextPiece>> next();

 private:
  Result<> open();
  Result<std::size_t> read_more(std::size_t bytes_max);
  Result<> fill(std::size_t bytes);
  Result<std::size_t> end_of_lines();
  Result<std::size_t> end_of_part();
  Result<std::size_t> end_of_piece() { return lines() ? end_of_lines() : end_of_part(); }
  bool lines() const;
  const BuildSource& file() const { return task_.sources[at_.file]; }
  const std::string& path() const { return file().path; }
  std::string_view rest() const { return std::string_view(text_).substr(taken_); }

  const BuildTask& task_;
  const BuildContext& context_;
  std::size_t piece_bytes_;
  bool lines_apart_;
  TextPlace at_;                         // of the first byte of rest()
  store::Fd fd_;                         // at the end of text_; not valid: the file is not open
  std::optional<store::Hasher> hasher_;  // of what was read of the file
  bool ended_ = false;                   // nothing is left behind text_
  std::string text_;
  std::size_t taken_ = 0;  // bytes at the beginning of text_ that pieces have
  MemoryHeld held_;        // counts text_
};

}  // namespace rille::data
