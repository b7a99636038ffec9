// Reads CSV files (RFC 4180) record by record: fields in quotes may have separators, line ends and doubled quotes.
// Private to runtime/compute/data. Errors: io; invalid, naming the file and the line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/result.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::data {

class CsvReader {
 public:
  static constexpr std::size_t record_bytes_max = 16 << 20;

  static Result<CsvReader> open(const std::string& path, char separator);

  // Reads the next record into `fields`; false: the file has ended. Empty lines are passed over.
  Result<bool> next(std::vector<std::string>& fields);
  std::int64_t line() const { return line_; }        // where the record that next() has read begins
  std::int64_t read_bytes() const { return read_; }  // of the file so far
  const std::string& path() const { return path_; }

 private:
  CsvReader(std::string path, char separator, store::Fd fd)
      : path_(std::move(path)), separator_(separator), fd_(std::move(fd)) {}
  Result<int> get();   // the next byte; -1: the file has ended
  Result<int> peek();  // the same, without taking it
  Result<> quoted(std::string& field);
  Result<bool> field(std::string& field);  // true: another field of the record follows

  std::string path_;
  char separator_;
  store::Fd fd_;
  std::string buffer_;
  std::size_t taken_ = 0, record_bytes_ = 0;
  std::int64_t line_ = 0, next_line_ = 1, read_ = 0;
};

}  // namespace rille::data
