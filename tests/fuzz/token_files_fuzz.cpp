// Files of token ids in any format: the ids that are read lie within the file. Files of merges and vocabularies give a
// tokenizer whose ids can be decoded, or an error.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/compute/data/token_files.hpp"
#include "runtime/compute/data/tokenizer.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;
namespace fs = std::filesystem;

namespace {

const fs::path& folder() {
  static const fs::path made = [] {
    const char* base = fs::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";  // thousands of small files
    fs::path path = fs::path(base) / ("rille-fuzz-" + std::to_string(::getpid()));
    fs::create_directories(path);
    std::atexit([] { fs::remove_all(folder()); });
    return path;
  }();
  return made;
}

std::string write_file(const char* name, std::string_view bytes) {
  const fs::path path = folder() / name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

void check_ids(const std::string& path, int width, std::size_t size) {
  const Result<data::TokenFile> file = data::TokenFile::open(path, width);
  if (!file) {
    const ErrorKind kind = file.error().kind;
    fuzz_check(kind == ErrorKind::integrity || kind == ErrorKind::invalid || kind == ErrorKind::io,
               "its kind is known");
    return;
  }
  fuzz_check(file->ids().size() <= size && file->count() * std::size_t(file->width_bytes()) <= file->ids().size(),
             "the ids lie within the file");
  unsigned sum = 0;
  for (const char c : file->ids()) sum += static_cast<unsigned char>(c);
  fuzz_check(sum < 256u * (unsigned(size) + 1), "the ids can be read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string raw = write_file("ids.bin", bytes);
  for (const int width : {0, 2, 4}) check_ids(raw, width, size);
  const std::size_t cut = bytes.find("\n\n");
  if (cut == bytes.npos) return 0;
  write_file("vocab.json", bytes.substr(0, cut));
  write_file("merges.txt", bytes.substr(cut + 2));
  const Result<data::Tokenizer> tokenizer = data::Tokenizer::open(folder().string());
  if (!tokenizer) fuzz_check(!tokenizer.error().message.empty(), "a refusal says why");
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::string header(1024, '\0');
  const std::uint32_t magic[] = {20240520, 1, 3};
  header.replace(0, sizeof magic, std::string(reinterpret_cast<const char*>(magic), sizeof magic));
  const std::uint32_t wide[] = {20240801, 7, 2};
  std::string wide_header(1024, '\0');
  wide_header.replace(0, sizeof wide, std::string(reinterpret_cast<const char*>(wide), sizeof wide));
  return {header + std::string("\1\0\2\0\3\0", 6), wide_header + std::string("\1\0\0\0\2\0\0\0", 8),
          std::string(16, '\7'), "{\"a\":0,\"b\":1,\"ab\":2,\"<|endoftext|>\":3}\n\n#version: 0.2\na b\n"};
}

std::vector<std::string> fuzz_words() {
  return {std::string(4, '\xff'),
          std::string("\0\0\0\x80", 4),
          std::string(4, '\0'),
          "a b\n",
          "\n\n",
          "\":-1,\"",
          "\":4294967296,\"",
          "\":0.5,\"",
          "#version",
          "b b\nbb b\n",
          "\xff",
          " \n"};
}
