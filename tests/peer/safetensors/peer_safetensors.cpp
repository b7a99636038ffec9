// Our side of peer.py: `write FILE` writes a known file; `read FILE` prints a line per tensor.
#include <cstdio>
#include <cstring>

#include "runtime/core/store/safetensors.hpp"

using namespace rille;
using namespace rille::store;

namespace {

Result<> write(const std::string& path) {
  float matrix[12];
  for (int i = 0; i < 12; ++i) matrix[i] = static_cast<float>(i);
  std::int64_t scalar = -(std::int64_t{1} << 62);
  std::uint16_t halves[2] = {0x3c00, 0xc000};
  std::uint8_t mask[3] = {1, 0, 1}, odd = 5;
  auto written = write_safetensors(path,
                                   {{"matrix", "F32", {3, 4}, matrix},
                                    {"scalar", "I64", {}, &scalar},
                                    {"empty", "F32", {0, 7}},
                                    {"f16", "F16", {2}, halves},
                                    {"mask", "BOOL", {3}, mask},
                                    {"na\"me/\xc3\xa9", "U8", {1}, &odd}},
                                   {{"format", "rille"}, {"quote", "a\"b"}});
  if (!written) return std::move(written).error();
  return success();
}

Result<> read(const std::string& path) {
  RILLE_TRY(auto file, SafetensorsFile::open(path));
  for (const TensorEntry& t : file.tensors()) {
    std::printf("%s|%s|[", t.name.c_str(), t.dtype.c_str());
    for (std::size_t i = 0; i < t.shape.size(); ++i)
      std::printf("%s%lld", i ? ",|" : "", static_cast<long long>(t.shape[i]));
    std::printf("]|");
    for (char byte : file.bytes(t)) std::printf("%02x", static_cast<unsigned char>(byte));
    std::printf("\n");
  }
  return success();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto done = std::strcmp(argv[1], "write") == 0 ? write(argv[2]) : read(argv[2]);
  if (!done) std::fprintf(stderr, "%s\n", done.error().summary().c_str());
  return done ? 0 : 1;
}
