// Shards of images and MDS's index from strangers: what an index gives lies within its files, its labels are in their
// range, and each image can be decoded or is refused.
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "runtime/compute/data/images_dataset.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view cut = "\n--\n";  // of MDS: between index.json and the shard

const fs::path& place() {
  static const fs::path made = [] {
    const char* base = fs::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";  // thousands of small files
    fs::path path = fs::path(base) / ("rille-fuzz-images-" + std::to_string(::getpid()));
    fs::create_directories(path / "mds");
    std::atexit([] { fs::remove_all(place()); });
    return path;
  }();
  return made;
}

void write_file(const fs::path& path, std::string_view bytes) {
  fuzz_check(store::write_file_atomic(path, bytes).ok(), "the input is there");
}

void check_image(const std::string& bytes) {
  const auto size = data::image_size(bytes, "it");
  if (!size) return;
  fuzz_check(size->width > 0 && size->height > 0 && std::int64_t{size->width} * size->height <= data::pixels_max,
             "a size is within the limit");
  constexpr std::int64_t decoded_pixels_max = 1 << 20;  // for the time that it takes
  if (std::int64_t{size->width} * size->height > decoded_pixels_max) return;
  const data::ImageFrame frame = data::random_frame(*size, {.size = 8}, bytes.size());
  std::vector<float> out(3 * 8 * 8, -1);
  if (data::draw_frame(bytes, "it", frame, {}, {}, out.data()))
    for (const float value : out) fuzz_check(value >= -0.01f && value <= 255.01f, "a value is a color");
}

void check(const fs::path& path, std::size_t size) {
  std::int64_t room_bytes = 64 << 20;
  const data::Room room = [&](std::int64_t more) -> Result<> {
    room_bytes -= more;
    return room_bytes < 0 ? Result<>(make_error(ErrorKind::memory, "full")) : success();
  };
  const auto index = data::ImageIndex::open(path, "", {{}, room, {}});
  if (!index) {
    fuzz_check(!index.error().message.empty(), "a refusal says why");
    return;
  }
  constexpr std::uint64_t looked_at_max = 20;
  for (std::uint64_t i = 0; i < std::min(index->size(), looked_at_max); ++i) {
    fuzz_check(index->label(i) >= 0 && index->label(i) < index->class_count(), "a label is one of the classes");
    fuzz_check(!index->name(i).empty(), "an image has a name");
    MemoryHeld held;
    const auto bytes = index->read(i, {}, held);
    fuzz_check(bytes.ok() && bytes->size() <= size, "an image lies within its file");
    check_image(*bytes);
  }
}

// Nearly every change makes a header's sum wrong: set them right, so that the changes reach the reader.
std::string with_sums(std::string tar) {
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

std::string entry(const std::string& name, const std::string& bytes, char kind = '0') {
  std::string out(512, '\0');
  out.replace(0, name.size(), name);
  char digits[12];
  std::snprintf(digits, sizeof digits, "%011zo", bytes.size());
  out.replace(124, 11, digits);
  out[156] = kind;
  out.replace(257, 8, std::string("ustar\00000", 8));
  return out + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

std::string words(std::initializer_list<std::uint32_t> list) {
  return {reinterpret_cast<const char*>(list.begin()), list.size() * sizeof(std::uint32_t)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  check_image(bytes);
  write_file(place() / "input.tar", with_sums(bytes));
  check(place() / "input.tar", size);
  const std::size_t end = bytes.find(cut);
  if (end == bytes.npos) return 0;
  write_file(place() / "mds/index.json", bytes.substr(0, end));
  write_file(place() / "mds/a.mds", bytes.substr(end + cut.size()));
  check(place() / "mds", size);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::uint8_t> rgb;
  for (int i = 0; i < 16 * 12 * 3; ++i) rgb.push_back(static_cast<std::uint8_t>(i * 7));
  const std::string image = data::encode_jpeg(rgb.data(), {16, 12}, 90).value();
  const auto bytes = static_cast<std::uint32_t>(image.size());
  const std::string end(1024, '\0'), pax = "22 path=long/name.cls\n", label(8, '\0');
  const std::string index =
      R"({"version":2,"shards":[{"column_encodings":["jpeg","int"],"column_names":["image","label"],)"
      R"("column_sizes":[null,8],"compression":null,"format":"mds","raw_data":{"basename":"a.mds"},"samples":1}]})";
  return {image, with_sums(entry("a/1.jpg", image) + entry("a/1.cls", "3") + end),
          with_sums(entry("b.json", R"({"label": 5})") + entry("b.jpeg", image) + end),
          with_sums(entry("././@LongLink", "long/name.jpg", 'L') + entry("x", image) + entry("x", pax, 'x') +
                    entry("y", "7") + end),
          index + std::string(cut) + words({1, 12, 24 + bytes, bytes}) + image + label};
}

std::vector<std::string> fuzz_words() {
  return {"ustar",
          "L",
          "x",
          "S",
          ".cls",
          ".jpg",
          ".json",
          "20 size=99999999999\n",
          "\x80\xff\xff\xff\xff\xff\xff\xff",
          std::string(4, '\xff'),
          std::string(4, '\0'),
          "\xff\xc0",
          "\xff\xc2",
          "\xff\xda",
          "\x89PNG\r\n\x1a\n",
          "\"uint64\"",
          "\"int8\"",
          "\"png\"",
          "null",
          "\n--\n"};
}
