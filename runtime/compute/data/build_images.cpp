// Builds WebDataset shards from labelled images: .tar files with KEY.jpg or KEY.png, and KEY.cls. Two passes over the
// sources, on all cores: the first hashes them and finds most mistakes, the second writes the shards. The images are
// mixed by a fixed permutation, because many readers of shards mix only what is near. progress.json says how many
// images finished shards have, so that an interrupted build goes on after them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "runtime/compute/data/build.hpp"
#include "runtime/compute/data/images_dataset.hpp"
#include "runtime/compute/data/ordered_jobs.hpp"
#include "runtime/compute/data/permutation.hpp"
#include "runtime/compute/device/lane.hpp"

namespace rille::data {

namespace {

constexpr std::size_t tar_block = 512;
constexpr int jpeg_quality = 90;
constexpr std::uint64_t mix_key = 0x7368617264733a31;  // a constant: the same images give the same shards

struct ShardOptions {
  std::int64_t size = 0;  // of the shorter side; 0: the bytes as they are
  std::int64_t shard_bytes = 0;
};

Result<ShardOptions> shard_options(const Value& given) {
  constexpr std::int64_t size_most = 1 << 14, bytes_usual = 256 << 20, bytes_most = std::int64_t{1} << 40;
  const auto whole = [&](const char* name, std::int64_t usual, std::int64_t most) -> Result<std::int64_t> {
    if (given[name].is_null()) return usual;
    const double* number = given[name].as_number();
    if (number && *number >= 1 && *number <= static_cast<double>(most) && *number == std::floor(*number))
      return static_cast<std::int64_t>(*number);
    return make_error(ErrorKind::invalid, fmt::format("data build: {} = {}: expected a whole number from 1 to {}", name,
                                                      given[name].to_json(), most));
  };
  ShardOptions out;
  RILLE_TRY(out.size, whole("size", 0, size_most));
  RILLE_TRY(out.shard_bytes, whole("shard_bytes", bytes_usual, bytes_most));
  return out;
}

// What the first pass learns of an image.
struct ImagePrint {
  std::uint64_t print = 0;
  std::int64_t bytes = 0;
};

std::uint64_t print_of(std::string_view bytes) {
  constexpr int digits = 16, base = 16;
  return std::stoull(store::fingerprint(bytes).xxh3.substr(0, digits), nullptr, base);
}

std::string tar_header(const std::string& name, std::size_t size) {
  std::string out(tar_block, '\0');
  const auto put = [&out](std::size_t at, std::string_view text) { out.replace(at, text.size(), text); };
  put(0, name);
  put(100, "0000644");  // mode, owner, group
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", size));
  put(136, "00000000000");  // time
  put(148, "        ");     // the sum, which counts itself as spaces
  put(156, "0");
  put(257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : out) sum += static_cast<unsigned char>(c);
  put(148, std::string_view(fmt::format("{:06o}", sum) + '\0'));
  return out;
}

void append_file(std::string& tar, const std::string& name, std::string_view bytes) {
  tar += tar_header(name, bytes.size());
  tar += bytes;
  tar.append((tar_block - bytes.size() % tar_block) % tar_block, '\0');
}

// The image as JPEG, with a shorter side of `size` pixels.
Result<std::string> shrunk(std::string_view bytes, const std::string& name, ImageSize from, std::int64_t size,
                           const BuildContext& context) {
  const auto axis = [&](int pixels) {
    const auto outputs = static_cast<int>(size * pixels / std::min(from.width, from.height));
    return Axis{0, double(pixels) / outputs, outputs, 0, pixels};
  };
  const ImageFrame frame{axis(from.width), axis(from.height), false};
  const ImageSize to{frame.x.outputs, frame.y.outputs};
  const std::size_t plane = static_cast<std::size_t>(to.width) * static_cast<std::size_t>(to.height);
  constexpr std::size_t bytes_of_pixel = 3 * (sizeof(float) + 2);  // planes, RGB, and at most as much JPEG
  RILLE_TRY(const MemoryHeld held, context.hold(plane * bytes_of_pixel));
  std::vector<float> planes(3 * plane);
  RILLE_CHECK(draw_frame(bytes, name, frame, {}, context.memory, planes.data()));
  std::vector<std::uint8_t> rgb(3 * plane);
  constexpr float brightest = 255;
  for (std::size_t i = 0; i < plane; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      rgb[3 * i + c] = static_cast<std::uint8_t>(std::clamp(std::nearbyint(planes[c * plane + i]), 0.0f, brightest));
  return encode_jpeg(rgb.data(), to, jpeg_quality);
}

// A sample as it stands in a shard.
struct TarSample {
  std::string tar;
  std::int64_t source_bytes = 0;
  std::string changed;  // the image's name, if it has other bytes than in the first pass
  MemoryHeld held;
};

class ImageShards {
 public:
  ImageShards(const BuildTask& task, const BuildContext& context, const ShardOptions& options, const ImageIndex& index)
      : task_(task), context_(context), options_(options), index_(index), mix_(index.size(), mix_key) {}

  // The first pass: the source, as dataset.json names it.
  Result<BuildSource> read_source() {
    RILLE_TRY(prints_held_, context_.hold(index_.size() * sizeof(ImagePrint)));
    prints_.reserve(index_.size());
    store::Hasher hasher;
    hasher.update(index_.digest());
    const auto look_at = [this](int, std::uint64_t& i, const std::atomic<bool>&) -> Result<ImagePrint> {
      MemoryHeld held;
      RILLE_TRY(const std::string bytes, index_.read(i, context_.memory, held));
      RILLE_CHECK(image_size(bytes, index_.name(i)));
      return ImagePrint{print_of(bytes), static_cast<std::int64_t>(bytes.size())};
    };
    RILLE_CHECK(each<ImagePrint>(0, look_at, [&](const ImagePrint& one) -> Result<> {
      hasher.update({reinterpret_cast<const char*>(&one.print), sizeof one.print});
      total_bytes_ += one.bytes;
      prints_.push_back(one);
      return success();
    }));
    return BuildSource{task_.sources.front().path, total_bytes_, hasher.finish().xxh3};
  }

  // The second pass, from the first image that no finished shard has.
  Result<> write(Dataset& set) {
    const auto first = static_cast<std::uint64_t>(std::max<std::int64_t>(0, set.facts.integer("images")));
    std::int64_t done_bytes = 0;
    for (std::uint64_t i = 0; i < std::min(first, index_.size()); ++i) done_bytes += prints_[mix_(i)].bytes;
    const auto pack = [this](int, std::uint64_t& i, const std::atomic<bool>&) { return sample(i); };
    RILLE_CHECK(each<TarSample>(first, pack, [&](const TarSample& one) -> Result<> {
      if (!one.changed.empty()) return changed_source(task_, one.changed);
      RILLE_CHECK(add(set, one));
      done_bytes += one.source_bytes;
      if (context_.progress) context_.progress(done_bytes, total_bytes_);
      return success();
    }));
    return finish(set);
  }

 private:
  // Calls work(thread, i, ended) for the numbers from `first` on, on all cores, and take(its result) in their order.
  template <class Out, class Work, class Take>
  Result<> each(std::uint64_t first, const Work& work, const Take& take) const {
    const int threads = device::Lane::threads_for(0);
    OrderedJobs<std::uint64_t, Out> jobs(threads, work);
    for (std::uint64_t next = first; next < index_.size() || jobs.given();) {
      while (next < index_.size() && jobs.given() < 2 * static_cast<std::size_t>(threads)) jobs.give(next++);
      RILLE_TRY(const Out done, jobs.take(context_.look));
      RILLE_CHECK(take(done));
    }
    return success();
  }

  Result<TarSample> sample(std::uint64_t place) const {
    const std::uint64_t i = mix_(place);
    const std::string name = index_.name(i);
    MemoryHeld held;
    RILLE_TRY(std::string bytes, index_.read(i, context_.memory, held));
    TarSample out;
    if (print_of(bytes) != prints_[i].print) {
      out.changed = name;
      return out;
    }
    RILLE_TRY(const ImageSize size, image_size(bytes, name));
    out.source_bytes = static_cast<std::int64_t>(bytes.size());
    bool is_png = bytes.starts_with("\x89PNG");
    if (options_.size && options_.size < std::min(size.width, size.height)) {
      RILLE_TRY(bytes, shrunk(bytes, name, size, options_.size, context_));
      is_png = false;
    }
    RILLE_TRY(out.held, context_.hold(bytes.size() + 4 * tar_block));
    out.tar.reserve(bytes.size() + 4 * tar_block);
    const std::string key = fmt::format("{:09}", place);
    append_file(out.tar, key + (is_png ? ".png" : ".jpg"), bytes);
    append_file(out.tar, key + ".cls", std::to_string(index_.label(i)));
    return out;
  }

  Result<> add(Dataset& set, const TarSample& one) {
    if (!file_) {
      path_ = fmt::format("{:06}.tar", set.shards.size());
      RILLE_TRY(auto file, store::FileWriter::create(task_.to + "/" + path_));
      file_.emplace(std::move(file));
      hasher_.emplace(true);
    }
    RILLE_CHECK(append(one.tar));
    ++count_;
    shard_bytes_ += static_cast<std::int64_t>(one.tar.size());
    return shard_bytes_ >= options_.shard_bytes ? finish(set) : success();
  }

  Result<> append(std::string_view bytes) {
    RILLE_CHECK(context_.writes(bytes.size()));
    hasher_->update(bytes);
    return file_->write(bytes);
  }

  Result<> finish(Dataset& set) {
    if (!file_) return success();
    RILLE_CHECK(append(std::string(2 * tar_block, '\0')));  // the end of a tar file
    RILLE_CHECK(file_->commit());
    file_.reset();
    set.shards.push_back({path_, "train", hasher_->finish(), count_});
    set.facts.set("images", set.facts.integer("images") + std::exchange(count_, 0));
    shard_bytes_ = 0;
    return note_progress(task_, set, "shard_bytes", context_);
  }

  const BuildTask& task_;
  const BuildContext& context_;
  const ShardOptions& options_;
  const ImageIndex& index_;
  const Permutation mix_;
  std::vector<ImagePrint> prints_;
  MemoryHeld prints_held_;
  std::int64_t total_bytes_ = 0;
  std::optional<store::FileWriter> file_;  // the shard that is written
  std::optional<store::Hasher> hasher_;
  std::string path_;
  std::int64_t count_ = 0, shard_bytes_ = 0;
};

}  // namespace

Result<Dataset> build_images(const BuildTask& given, const BuildContext& context) {
  RILLE_TRY(const ShardOptions options, shard_options(given.options));
  BuildTask task = given;
  if (task.sources.size() != 1)
    return make_error(ErrorKind::invalid,
                      fmt::format("data build: {} sources are given for one data set of images", task.sources.size()),
                      "name one folder that has a folder for each class");
  std::vector<MemoryHeld> held;
  RILLE_TRY(const ImageIndex index,
            ImageIndex::open(task.sources.front().path, "", {context.look, context.room(held), {}}));
  ImageShards shards(task, context, options, index);
  RILLE_TRY(task.sources.front(), shards.read_source());
  Dataset plan;
  plan.kind = "images";
  plan.options.set("size", options.size).set("shard_bytes", options.shard_bytes);
  plan.facts.set("images", 0).set("classes", index.class_count());
  plan.facts.set("class_names", Value::Array(index.class_names().begin(), index.class_names().end()));
  RILLE_TRY(Begun begun, begin_dataset(task, std::move(plan), context));
  if (begun.complete) return std::move(begun.from);
  if (auto done = shards.write(begun.from); !done) return with_kept(std::move(done).error(), begun.from);
  RILLE_CHECK(end_dataset(task, begun.from, context));
  return std::move(begun.from);
}

}  // namespace rille::data
