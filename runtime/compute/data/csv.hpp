// Reads CSV files (RFC 4180) record by record: fields in quotes may have separators, line ends and doubled quotes.
// Private to runtime/compute/data. Errors: io; invalid, naming the file and the line; memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/base/result.hpp"
#include "runtime/core/base/use.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/core/store/hash.hpp"

namespace rille::data {

class CsvReader {
 public:
  static constexpr std::size_t record_bytes_max = 16 << 20, fields_max = 10'000;

  // memory: counts the buffer and the record; may be null.
  static Result<CsvReader> open(const std::string& path, char separator, std::shared_ptr<MemoryUse> memory = {});

  // Reads the next record into `fields`, which has that of the last call; false: the file has ended. Empty lines are
  // passed over.
  Result<bool> next(std::vector<std::string>& fields);
  std::int64_t line() const { return line_; }        // where the record that next() has read begins
  std::int64_t read_bytes() const { return read_; }  // of the file so far
  const std::string& path() const { return path_; }
  std::string xxh3() { return hasher_.finish().xxh3; }  // of the file; call it once, when it has ended

 private:
  CsvReader(std::string path, char separator, store::Fd fd, std::shared_ptr<MemoryUse> memory)
      : path_(std::move(path)), separator_(separator), fd_(std::move(fd)), memory_(std::move(memory)) {}
  Result<> hold(std::size_t record_bytes);
  Result<> record_grows();
  Result<int> get();   // the next byte; -1: the file has ended
  Result<int> peek();  // the same, without taking it
  Result<> quoted(std::string& field);
  Result<bool> field(std::string& field);  // true: another field of the record follows

  std::string path_;
  char separator_;
  store::Fd fd_;
  store::Hasher hasher_;
  std::string buffer_;
  std::size_t taken_ = 0, record_bytes_ = 0;
  std::size_t held_bytes_ = 0;  // a record may have so many
  std::size_t kept_bytes_ = 0;  // that the fields may have room for
  std::shared_ptr<MemoryUse> memory_;
  MemoryHeld held_;
  std::int64_t line_ = 0, next_line_ = 1, read_ = 0;
};

}  // namespace rille::data
