// Images in folders, tar and MDS shards: the same batches whatever the threads and ranks, pixels as a plain resize
// gives them, and damaged bytes as errors that name the image.
#include "runtime/compute/data/images_dataset.hpp"

#include <png.h>
#include <pthread.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "runtime/compute/data/build.hpp"

namespace rille::data {
namespace {

namespace fs = std::filesystem;

struct ImageFolder {
  fs::path path = fs::temp_directory_path() / ("rille-images-" + std::to_string(::getpid()));
  ImageFolder() { fs::create_directories(path); }
  ~ImageFolder() { fs::remove_all(path); }
  std::string write(const std::string& name, const std::string& bytes) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << bytes;
    return (path / name).string();
  }
};

// A smooth picture: JPEG keeps it nearly as it is.
std::vector<std::uint8_t> picture(int width, int height, int tone) {
  std::vector<std::uint8_t> rgb;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        rgb.push_back(static_cast<std::uint8_t>(128 + 60 * std::sin(0.05 * (x + 3 * c) + tone) +
                                                50 * std::cos(0.07 * y - 0.3 * tone)));
  return rgb;
}

std::string jpeg(int width, int height, int tone = 0) {
  return encode_jpeg(picture(width, height, tone).data(), {width, height}, 95).value();
}

std::string png(int width, int height, int tone = 0) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width), image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  const auto rgb = picture(width, height, tone);
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string out(bytes, '\0');
  REQUIRE(png_image_write_to_memory(&image, out.data(), &bytes, 0, rgb.data(), 0, nullptr));
  out.resize(bytes);
  return out;
}

std::string tar_entry(const std::string& name, const std::string& data, char kind = '0') {
  std::string header(512, '\0');
  std::memcpy(header.data(), name.data(), std::min<std::size_t>(name.size(), 100));
  std::snprintf(header.data() + 124, 12, "%011zo", data.size());
  header[156] = kind;
  std::memcpy(header.data() + 257, "ustar\00000", 8);
  unsigned sum = 8 * ' ';
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(header.data() + 148, 8, "%06o", sum);
  return header + data + std::string((512 - data.size() % 512) % 512, '\0');
}

std::string words(const std::vector<std::uint32_t>& list) {
  return {reinterpret_cast<const char*>(list.data()), list.size() * 4};
}

// A shard with columns image (jpeg) and label (int), and its index.json.
std::string mds(const std::vector<std::string>& images) {
  std::string body;
  std::vector<std::uint32_t> head{static_cast<std::uint32_t>(images.size())};
  const auto first = static_cast<std::uint32_t>(4 * (images.size() + 2));
  std::int64_t label = 0;
  for (const std::string& image : images) {
    head.push_back(first + static_cast<std::uint32_t>(body.size()));
    body += words({static_cast<std::uint32_t>(image.size())}) + image +
            std::string(reinterpret_cast<const char*>(&label), 8);
    ++label;
  }
  head.push_back(first + static_cast<std::uint32_t>(body.size()));
  return words(head) + body;
}

std::string mds_index(std::size_t samples, const std::string& basename = "shard.00000.mds") {
  return R"({"version":2,"shards":[{"column_encodings":["jpeg","int"],"column_names":["image","label"],)"
         R"("column_sizes":[null,8],"compression":null,"format":"mds","raw_data":{"basename":")" +
         basename + R"(","bytes":1,"hashes":{}},"samples":)" + std::to_string(samples) + "}]}";
}

ImagesDataset open(const std::string& path, const ImagesOptions& options, int threads = 2) {
  auto set = ImagesDataset::open(path, options, {}, {}, threads);
  if (!set) FAIL(set.error().summary());
  return std::move(*set);
}

std::vector<float> pixels(const ImageBatch& batch, std::size_t values) {
  return {batch.x.get(), batch.x.get() + batch.y.size() * values};
}

Error error_of(const std::string& path) {
  auto index = ImageIndex::open(path, "", {});
  if (index) FAIL("'" << path << "' was read");
  return index.error();
}

struct FewThreads {
  const char* const usual = std::getenv("RILLE_THREADS");
  const std::string before = usual ? usual : "";
  explicit FewThreads(const char* number) { ::setenv("RILLE_THREADS", number, 1); }
  ~FewThreads() {
    if (usual) ::setenv("RILLE_THREADS", before.c_str(), 1);
    else ::unsetenv("RILLE_THREADS");
  }
};

// 24 images of the classes cat, cow and dog: JPEG and PNG in turns.
void write_animals(const ImageFolder& folder, int tone = 0) {
  const char* const names[] = {"dog", "cat", "cow"};
  for (int i = 0; i < 24; ++i)
    folder.write(std::string("animals/") + names[i % 3] + "/" + std::to_string(i) + (i % 2 ? ".png" : ".jpg"),
                 i % 2 ? png(30 + i, 40, i + tone) : jpeg(30 + i, 40, i + tone));
}

Value shards_of(const ImageFolder& folder, const std::string& to) {
  return Value()
      .set("sources", Value::Array{(folder.path / "animals").string()})
      .set("to", (folder.path / to).string());
}

std::map<std::string, std::string> files_beneath(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::directory_iterator(folder))
    out[entry.path().filename()] = *store::read_file(entry.path());
  return out;
}

// The bytes and the label of each image, sorted.
std::multimap<std::string, int> samples_of(const fs::path& path) {
  const auto index = ImageIndex::open(path, "", {});
  if (!index) FAIL(index.error().summary());
  std::multimap<std::string, int> out;
  MemoryHeld held;
  for (std::uint64_t i = 0; i < index->size(); ++i) out.emplace(*index->read(i, {}, held), index->label(i));
  return out;
}

// The weighted mean of each output of a resize of one axis, in plain doubles.
double plain(const std::vector<std::uint8_t>& rgb, int width, int height, const ImageFrame& f, int i, int j, int c) {
  const auto weight = [](const Axis& a, int output, int pixel) {
    const double reach = std::max(a.scale, 1.0), middle = a.start + (output + 0.5) * a.scale;
    return pixel < a.low || pixel >= a.high ? 0.0 : std::max(0.0, 1 - std::abs(pixel + 0.5 - middle) / reach);
  };
  double sum = 0, weights = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const double w = weight(f.y, i, y) * weight(f.x, j, x);
      sum += w * rgb[static_cast<std::size_t>((y * width + x) * 3 + c)], weights += w;
    }
  return sum / weights;
}

void compare(const std::string& bytes, int width, int height, const ImageFrame& frame, double tolerance) {
  const int size = frame.x.outputs;
  std::vector<float> out(static_cast<std::size_t>(3 * size * size));
  REQUIRE(draw_frame(bytes, "it", frame, {}, {}, out.data()));
  const auto rgb = picture(width, height, 0);
  double worst = 0;
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) {
        const float got = out[static_cast<std::size_t>((c * size + i) * size + (frame.mirrored ? size - 1 - j : j))];
        worst = std::max(worst, std::abs(got - plain(rgb, width, height, frame, i, j, c)));
      }
  CHECK(worst <= tolerance);
}

}  // namespace

TEST_CASE("pixels are those of a plain resize") {
  const ImagesOptions options{.size = 12, .resize = 16};
  for (const auto& [width, height] : {std::pair{61, 40}, {10, 9}, {40, 300}}) {
    compare(png(width, height), width, height, middle_frame({width, height}, options), 1e-3);
    compare(jpeg(width, height), width, height, middle_frame({width, height}, options), 4);
    for (std::uint64_t place = 0; place < 5; ++place) {
      const ImageFrame frame = random_frame({width, height}, options, place);
      compare(png(width, height), width, height, frame, 1e-3);
      compare(jpeg(width, height), width, height, frame, 5);
    }
  }
}

TEST_CASE("a part of a JPEG has the pixels of the whole") {
  const std::string bytes = jpeg(203, 157);
  for (const int divisor : {1, 2, 4, 8}) {
    const auto whole = decode_image(bytes, "it", {0, 0, 203, 157}, divisor, {});
    REQUIRE(whole);
    CHECK((whole->left == 0 && whole->width == (203 + divisor - 1) / divisor));
    for (int i = 0; i < 40; ++i) {
      const PixelBox box{i * 4, i * 3, 40 - i / 4, 30 - i / 4};
      const auto part = decode_image(bytes, "it", box, divisor, {});
      REQUIRE(part);
      int differ = 0;
      for (int y = box.top / divisor; y < (box.top + box.height) / divisor; ++y)
        for (int x = box.left / divisor; x < (box.left + box.width) / divisor; ++x)
          differ += std::memcmp(part->rgb.data() + ((y - part->top) * part->width + x - part->left) * 3,
                                whole->rgb.data() + (y * whole->width + x) * 3, 3) != 0;
      CHECK(differ == 0);
    }
  }
}

TEST_CASE("random boxes have torchvision's areas and ratios") {
  double area = 0, mirrored = 0;
  constexpr int count = 20000;
  for (std::uint64_t place = 0; place < count; ++place) {
    const ImageFrame f = random_frame({500, 375}, {.seed = 3}, place);
    const double width = f.x.scale * 224, height = f.y.scale * 224;
    area += width * height / (500 * 375), mirrored += f.mirrored;
    REQUIRE((f.x.low >= 0 && f.x.high <= 500 && f.y.low >= 0 && f.y.high <= 375));
    REQUIRE((width / height > 0.73 && width / height < 1.36));
  }
  CHECK(area / count == Approx(0.433).margin(0.005));  // 200,000 draws of torchvision's rule in Python: 0.4328
  CHECK(mirrored / count == Approx(0.5).margin(0.02));
  const ImageFrame narrow = random_frame({10, 1000}, {.seed = 3}, 1);  // no attempt fits
  CHECK((narrow.x.high == 10 && narrow.y.high - narrow.y.low == 13 && narrow.y.low == 493));
}

TEST_CASE("folders, tar and MDS give the same images, whatever the threads and ranks") {
  const ImageFolder folder;
  std::vector<std::string> images;
  std::string tar;
  for (int i = 0; i < 10; ++i) {
    images.push_back(jpeg(30 + i, 40, i));
    folder.write("folders/class" + std::to_string(i) + "/sub/a.JPEG", images.back());
    tar += tar_entry("s/" + std::to_string(i) + ".jpg", images.back()) +
           (i % 2 ? tar_entry("s/" + std::to_string(i) + ".cls", std::to_string(i) + "\n")
                  : tar_entry("s/" + std::to_string(i) + ".json", "{\"label\": " + std::to_string(i) + "}"));
  }
  folder.write("tars/one.tar", tar + std::string(1024, '\0'));
  folder.write("mds/shard.00000.mds", mds(images));
  folder.write("mds/index.json", mds_index(images.size()));
  const ImagesOptions options{.size = 8, .seed = 4};
  constexpr std::size_t values = 3 * 8 * 8;
  auto first = open(folder.path / "folders", options, 1);
  CHECK(first.index().class_names().at(3) == "class3");
  const auto batch = first.next(20).value();
  const auto wanted = pixels(batch, values);
  CHECK(std::set<int>(batch.y.begin(), batch.y.begin() + 10).size() == 10);
  for (const char* name : {"tars", "tars/one.tar", "mds"}) {
    auto other = open(folder.path / name, options, 3);
    CHECK(other.index().class_count() == 10);
    std::vector<float> got;
    for (int step = 0; step < 2; ++step)
      for (int rank = 0; rank < 2; ++rank) {
        auto mine = open(folder.path / name, options, 3);
        if (step) REQUIRE(mine.next(5, rank, 2));
        const auto part = mine.next(5, rank, 2).value();
        const auto list = pixels(part, values);
        got.insert(got.end(), list.begin(), list.end());
      }
    CHECK(got == wanted);
  }
}

TEST_CASE("a position is restored, and other data are refused") {
  const ImageFolder folder;
  for (int i = 0; i < 12; ++i)
    folder.write("d/" + std::to_string(i % 3) + "/" + std::to_string(i) + ".png", png(20, 16, i));
  const ImagesOptions options{.size = 8, .seed = 1, .validation = 0.25};
  auto one = open(folder.path / "d", options), two = open(folder.path / "d", options);
  CHECK((one.rows() == 9 && one.validation_rows() == 3));
  REQUIRE(one.next(5));
  const Value state = one.state();
  const auto after = pixels(one.next(7).value(), 192);
  REQUIRE(two.restore(state));
  CHECK(pixels(two.next(7).value(), 192) == after);
  CHECK(pixels(one.validation(2, 2).value(), 192) == pixels(two.validation(5, 2).value(), 192));
  const auto refused = open(folder.path / "d", {.size = 8, .seed = 2, .validation = 0.25}).restore(state);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("seed") != std::string::npos);
  auto stops = open(folder.path / "d", options);
  CHECK_THROWS(stops.next(4000, 0, 1, [] { throw std::runtime_error("enough"); }));
  CHECK(stops.cursor() == 0);
}

TEST_CASE("an error tells that no thread could be started") {
  const ImageFolder folder;
  folder.write("d/a/1.png", png(20, 20));
  auto set = open(folder.path / "d", {.size = 8});
  pthread_attr_t usual, huge;  // no address space has room for such a stack
  REQUIRE(::pthread_getattr_default_np(&usual) == 0);
  REQUIRE(::pthread_attr_init(&huge) == 0);
  REQUIRE(::pthread_attr_setstacksize(&huge, std::size_t{1} << 48) == 0);
  REQUIRE(::pthread_setattr_default_np(&huge) == 0);
  const auto refused = set.next(1);
  ::pthread_setattr_default_np(&usual);
  ::pthread_attr_destroy(&huge);
  ::pthread_attr_destroy(&usual);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::memory);
  CHECK((set.cursor() == 0 && set.next(1)));
}

TEST_CASE("a damaged image is an error that names it, or is passed over") {
  const ImageFolder folder;
  folder.write("d/a/1.jpg", jpeg(20, 20));
  folder.write("d/a/2.jpg", jpeg(64, 64).substr(0, 500));
  folder.write("d/a/3.png", png(20, 20).substr(0, 200));
  folder.write("d/b/4.png", "GIF89a");
  folder.write("d/b/5.png", png(20, 20));
  auto strict = open(folder.path / "d", {.size = 8, .train = false});
  REQUIRE(strict.next(1));
  const auto refused = strict.next(1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::integrity);
  CHECK(refused.error().message.find("d/a/2.jpg") != std::string::npos);
  CHECK(strict.cursor() == 1);
  auto passing = open(folder.path / "d", {.size = 8, .train = false, .skip_damaged = true});
  CHECK(passing.next(5).value().y == std::vector<std::int32_t>{0, 1, 1, 1, 1});
  CHECK(passing.damaged() >= 6);
  std::string huge = png(20, 20);  // IHDR: width and height from byte 16 on, then a CRC that fails
  huge[16] = huge[20] = 0x10;
  CHECK_FALSE(image_size(huge, "huge"));
  std::string wide = jpeg(20, 20);  // SOF0: height and width behind its length and precision
  const std::size_t frame = wide.find("\xff\xc0");
  wide.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  CHECK(image_size(wide, "wide").error().message.find("65500 x 65500 pixels") != std::string::npos);
}

TEST_CASE("shards with wrong sizes, names and labels are refused") {
  const ImageFolder folder;
  const std::string image = jpeg(20, 20), sound = tar_entry("a.jpg", image) + tar_entry("a.cls", "1");
  const auto tar = [&](const std::string& bytes) { return error_of(folder.write("t.tar", bytes)); };
  REQUIRE(ImageIndex::open(folder.write("t.tar", sound), "", {}));
  CHECK(tar(sound.substr(0, 700)).kind == ErrorKind::integrity);
  CHECK(tar(tar_entry("a.jpg", image)).message.find("no label for the sample 'a'") != std::string::npos);
  CHECK(tar(tar_entry("a\x1b[1m.jpg", image)).message.find('\x1b') == std::string::npos);
  CHECK(tar(tar_entry("a.jpg", image) + tar_entry("a.png", image)).message.find("second image") != std::string::npos);
  CHECK(tar(tar_entry("a.cls", "-1") + tar_entry("a.jpg", image)).message.find("label -1") != std::string::npos);
  CHECK(tar(tar_entry("a.cls", "dog")).message.find("'dog'") != std::string::npos);
  CHECK(tar(tar_entry("x", "999 path=a\n", 'x')).message.find("pax") != std::string::npos);
  std::string lies = sound;
  std::memcpy(lies.data() + 124, "77777777777", 11);
  CHECK(tar(lies).message.find("no header") != std::string::npos);  // its sum does not fit
  CHECK(tar("").message.find("no images") != std::string::npos);
  const std::string named = tar_entry("././@LongLink", "long/name.jpg", 'L') + tar_entry("x", image) +
                            tar_entry("x", "21 path=long/name.cls\n", 'x');
  CHECK(tar(named).message.find("pax records") != std::string::npos);
  REQUIRE(
      ImageIndex::open(folder.write("t.tar", tar_entry("././@LongLink", "long/name.jpg", 'L') + tar_entry("x", image) +
                                                 tar_entry("x", "22 path=long/name.cls\n", 'x') + tar_entry("y", "7")),
                       "", {}));

  const auto with = [&](const std::string& shard, const std::string& index) {
    folder.write("m/shard.00000.mds", shard);
    folder.write("m/index.json", index);
    return error_of(folder.path / "m");
  };
  const std::string shard = mds({image, image});
  CHECK(with(shard, mds_index(3)).message.find("index.json says 3") != std::string::npos);
  CHECK(with(shard, mds_index(2, "../m/shard.00000.mds")).message.find("basename") != std::string::npos);
  CHECK(with(shard.substr(0, 100), mds_index(2)).kind == ErrorKind::integrity);
  CHECK(with(shard, "{").kind == ErrorKind::integrity);
  std::string places = shard;
  std::memset(places.data() + 8, 0xff, 4);
  CHECK(with(places, mds_index(2)).message.find("is not within it") != std::string::npos);
  std::string packed = mds_index(2, "none.mds");
  packed.replace(packed.find("null,\"format\""), 4, "\"zstd\"");
  CHECK(with(shard, packed).message.find("compressed (\"zstd\")") != std::string::npos);
}

TEST_CASE("a folder of images becomes shards: the same ones on any number of threads, and after any stop") {
  const ImageFolder folder;
  write_animals(folder);
  Value options = shards_of(folder, "whole");
  options.set("shard_bytes", 10'000);
  {
    const FewThreads one("1");
    const auto made = build_dataset(options, {});
    if (!made) FAIL(made.error().summary());
    CHECK((made->kind == "images" && made->facts.integer("images") == 24 && made->facts.integer("classes") == 3));
    CHECK(made->shards.size() > 3);
  }
  const auto whole = files_beneath(folder.path / "whole");
  CHECK(samples_of(folder.path / "whole") == samples_of(folder.path / "animals"));
  const auto index = ImageIndex::open(folder.path / "whole", "", {});
  CHECK(index.value().class_names() == std::vector<std::string>{"cat", "cow", "dog"});
  CHECK(open(folder.path / "whole", {.size = 8}).next(24));
  std::vector<int> first;
  for (std::uint64_t i = 0; i < 12; ++i) first.push_back(index->label(i));
  CHECK(std::set<int>(first.begin(), first.end()).size() == 3);  // they are mixed
  CHECK(build_dataset(options, {}).value().kept == static_cast<int>(whole.size()) - 1);

  const FewThreads four("4");
  struct Stop {};
  for (const int stop : {1, 13, 23}) {
    options.set("to", (folder.path / ("stopped" + std::to_string(stop))).string());
    int seen = 0;
    const auto progress = [&](std::int64_t, std::int64_t) {
      if (++seen == stop) throw Stop();
    };
    CHECK_THROWS_AS(build_dataset(options, {{}, {}, {}, progress}), Stop);
    CHECK_FALSE(fs::exists(options.text("to") + "/dataset.json"));
    std::int64_t done = 0, total = 1;
    const auto made =
        build_dataset(options, {{}, {}, {}, [&](std::int64_t a, std::int64_t b) { done = a, total = b; }});
    if (!made) FAIL(made.error().summary());
    CHECK(done == total);
    CHECK((made->kept > 0) == (stop > 10));
    CHECK(files_beneath(options.text("to")) == whole);
  }
}

TEST_CASE("shards of unfinished and damaged data sets are not read") {
  const ImageFolder folder;
  write_animals(folder);
  REQUIRE(build_dataset(shards_of(folder, "out").set("shard_bytes", 10'000), {}).ok());
  fs::rename(folder.path / "out/dataset.json", folder.path / "out/progress.json");
  CHECK(error_of(folder.path / "out").kind == ErrorKind::state);
  fs::rename(folder.path / "out/progress.json", folder.path / "out/dataset.json");
  fs::remove(folder.path / "out/000001.tar");
  CHECK(error_of(folder.path / "out").message.find("'000001.tar' is missing") != std::string::npos);
}

TEST_CASE("images in shards are made smaller, and small ones keep their bytes") {
  const ImageFolder folder;
  const std::string small = png(20, 60);
  folder.write("animals/cat/small.png", small);
  folder.write("animals/cat/large.png", png(64, 48));
  folder.write("animals/cat/tall.jpg", jpeg(100, 301));
  const auto made = build_dataset(shards_of(folder, "out").set("size", 24), {});
  if (!made) FAIL(made.error().summary());
  std::set<std::pair<int, int>> sizes;
  for (const auto& [bytes, label] : samples_of(folder.path / "out")) {
    const ImageSize size = image_size(bytes, "it").value();
    sizes.insert({size.width, size.height});
    CHECK(bytes.starts_with("\x89PNG") == (size.width == 20));
    CHECK((size.width != 20 || bytes == small));
    if (size.width != 32) continue;
    const auto pixels = decode_image(bytes, "it", {0, 0, 32, 24}, 1, {}).value();
    const auto rgb = picture(64, 48, 0);
    const ImageFrame frame{{0, 2, 32, 0, 64}, {0, 2, 24, 0, 48}, false};
    double worst = 0;
    for (int i = 0; i < 24 * 32 * 3; ++i)
      worst = std::max(worst, std::abs(pixels.rgb[static_cast<std::size_t>(i)] -
                                       plain(rgb, 64, 48, frame, i / 96, i / 3 % 32, i % 3)));
    CHECK(worst < 8);
  }
  CHECK(sizes == std::set<std::pair<int, int>>{{20, 60}, {32, 24}, {24, 72}});
}

TEST_CASE("builds of images: changed sources, limits and mistakes") {
  const ImageFolder folder;
  write_animals(folder);
  const auto build = [&](const char* to, const BuildContext& context) {
    auto made = build_dataset(shards_of(folder, to), context);
    if (made) FAIL("'" << to << "' was built");
    return made.error();
  };
  const FewThreads two("2");
  const auto changes = [&](std::int64_t, std::int64_t) { write_animals(folder, 1); };
  const Error changed = build("changed", {{}, {}, {}, changes});
  CHECK((changed.kind == ErrorKind::integrity && changed.message.find("was changed") != std::string::npos));
  CHECK_FALSE(fs::exists(folder.path / "changed/progress.json"));

  const auto memory = std::make_shared<MemoryUse>(std::int64_t{3} << 19);  // the index asks for 1 MiB
  folder.write("animals/cat/large.png", png(30, 40) + std::string(1 << 20, '\0'));
  CHECK(build("memory", {{}, memory, {}, {}}).kind == ErrorKind::memory);
  CHECK(memory->total_bytes() == 0);
  fs::remove(folder.path / "animals/cat/large.png");
  const Room full = [](std::int64_t) -> Result<> { return make_error(ErrorKind::quota, "full"); };
  CHECK(build("disk", {{}, {}, full, {}}).kind == ErrorKind::quota);
  struct Stop {};
  CHECK_THROWS_AS(build_dataset(shards_of(folder, "stop"), {[] { throw Stop(); }, {}, {}, {}}), Stop);

  folder.write("animals/cat/z.jpg", "GIF89a");
  const Error damaged = build("damaged", {});
  CHECK(damaged.message.find("cat/z.jpg") != std::string::npos);
  CHECK_FALSE(fs::exists(folder.path / "damaged"));  // found before the folder was made
  Value wrong = shards_of(folder, "wrong");
  CHECK(build_dataset(wrong.set("size", 0.5), {}).error().message.find("size = 0.5") != std::string::npos);
  CHECK(build_dataset(wrong.set("siez", 1), {}).error().hint.find("'size'") != std::string::npos);
  wrong = shards_of(folder, "wrong");
  wrong.as_object()->at("sources").as_array()->push_back((folder.path / "animals").string());
  CHECK(build_dataset(wrong, {}).error().message.find("2 sources") != std::string::npos);
}

}  // namespace rille::data
