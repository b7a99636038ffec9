// Whatever the bytes are: nothing appears beside the folder, no link leads out of it, no more is written than there is
// room for, and a refusal says why.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/core/store/file.hpp"
#include "runtime/core/store/unpack.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t room_bytes = 1 << 20;

struct Place {  // in memory, if there is such a file system
  fs::path path;
  Place() {
    std::string name = fs::is_directory("/dev/shm") ? "/dev/shm/rille-fuzz-XXXXXX" : "/tmp/rille-fuzz-XXXXXX";
    fuzz_check(mkdtemp(name.data()), "there is a folder to write in");
    path = name;
  }
  ~Place() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

void check_beneath(const fs::path& outer, const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(outer))
    fuzz_check(entry.path() == folder, "nothing appears beside the folder");
  if (!fs::exists(folder)) return;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    fuzz_check(entry.is_symlink() || entry.is_regular_file() || entry.is_directory(), "there are no devices");
    if (!entry.is_symlink()) continue;
    std::error_code error;  // a loop of links
    const std::string real = fs::weakly_canonical(entry.path(), error).string();
    fuzz_check(error || (real + "/").starts_with(folder.string() + "/"), "a link stays in the folder");
  }
}

void check(const Place& place, std::string_view bytes, const char* name) {
  const std::string archive = place.path / name;
  const fs::path outer = place.path / "outer", folder = outer / "folder";
  fuzz_check(store::write_file_atomic(archive, bytes).ok(), "the input is there");
  fs::create_directory(outer);
  std::int64_t left_bytes = room_bytes;
  const Room room = [&](std::int64_t more) -> Result<> {
    fuzz_check(more >= 0, "bytes are not negative");
    if (more > left_bytes) return make_error(ErrorKind::quota, "full");
    left_bytes -= more;
    return success();
  };
  const std::atomic<bool> stop{false};
  const auto sum = store::unpack(archive, folder, stop, room);
  if (sum)
    fuzz_check(sum->size_bytes >= 0 && sum->size_bytes <= room_bytes, "no more is written than there is room for");
  else fuzz_check(!sum.error().message.empty(), "a refusal says why");
  check_beneath(outer, folder);
  fs::remove_all(outer);
  fs::remove(archive);
}

// A header of tar with its checksum.
std::string header_of(const std::string& name, char type, std::size_t size, const std::string& link = "") {
  std::string out(512, '\0');
  out.replace(0, name.size(), name);
  out.replace(100, 7, "0000644");
  char digits[12];
  std::snprintf(digits, sizeof digits, "%011zo", size);
  out.replace(124, 11, digits);
  out.replace(148, 8, "        ");
  out[156] = type;
  out.replace(157, link.size(), link);
  out.replace(257, 6, std::string("ustar\0", 6));
  out.replace(263, 2, "00");
  return out;
}

// Nearly every change makes a header's checksum wrong: set them right, so that the changes reach the reader.
std::string with_checksums(std::string tar) {
  for (std::size_t at = 0; at + 512 <= tar.size(); at += 512) {
    if (tar.compare(at + 257, 5, "ustar") != 0) continue;
    tar.replace(at + 148, 8, "        ");
    unsigned sum = 0;
    for (std::size_t i = at; i < at + 512; ++i) sum += static_cast<unsigned char>(tar[i]);
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    tar.replace(at + 148, 7, std::string(digits, 7));
  }
  return tar;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Place place;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  check(place, bytes, "input.zst");
  check(place, with_checksums(bytes), "input.tar");
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const auto block = [](std::string content) { return content.append(512 - content.size() % 512, '\0'); };
  const std::string end(1024, '\0');
  const std::string pax =
      "19 path=gr\xc3\xb6\xc3\x9f"
      "e.txt\n";
  return {
      with_checksums(header_of("folder/", '5', 0) + header_of("folder/a", '0', 5) + block("hello") +
                     header_of("folder/link", '2', 0, "../b") + header_of("b", '1', 0, "folder/a") + end),
      with_checksums(header_of("x", 'x', pax.size()) + block(pax) + header_of("short", '0', 3) + block("abc") + end),
      with_checksums(header_of("dev", '3', 0) + header_of("pipe", '6', 0) + end),
      // A zip with one stored file.
      std::string("PK\x03\x04\x0a\0\0\0\0\0\0\0!\0\xac*\x93\xd8\x02\0\0\0\x02\0\0\0\x01\0\0\0ahi"
                  "PK\x01\x02\x1e\x03\x0a\0\0\0\0\0\0\0!\0\xac*\x93\xd8\x02\0\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0"
                  "\xa4\x81\0\0\0\0aPK\x05\x06\0\0\0\0\x01\0\x01\0/\0\0\0!\0\0\0\0\0",
                  33 + 47 + 22),
      std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\xc8\x04\0\xac*\x93\xd8\x02\0\0\0", 22),
      std::string("\x28\xb5\x2f\xfd\x20\x02\x11\0\0hi", 11),
  };
}

std::vector<std::string> fuzz_words() {
  return {"../",
          "/",
          "ustar",
          "PK\x01\x02",
          "PK\x03\x04",
          "PK\x05\x06",
          "PK\x06\x06",
          "\x1f\x8b\x08",
          "BZh9",
          "0",
          "1",
          "2",
          "5",
          "L",
          "K",
          "x",
          "g",
          "S",
          "30 linkpath=../../x\n",
          "22 GNU.sparse.size=9\n",
          "\x80\xff\xff\xff\xff\xff\xff\xff"};
}
