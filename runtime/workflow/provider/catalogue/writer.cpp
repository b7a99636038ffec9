#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "runtime/core/store/hash.hpp"
#include "runtime/workflow/provider/catalogue/file.hpp"
#include "runtime/workflow/provider/catalogue/layout.hpp"

namespace rille::provider {

struct CatalogueWriter::Tables {
  static constexpr std::size_t two_bytes_max = std::numeric_limits<std::uint16_t>::max();
  std::string text;
  // the texts already in the pool, except offer ids, which are unique
  std::map<std::string, layout::Text, std::less<>> texts;
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::size_t> gpu_of;
  std::map<std::pair<std::string, std::string>, std::size_t> place_of;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, bool>, std::size_t> billing_of;
  std::map<std::string, std::uint32_t, std::less<>> word_of;
  std::unordered_map<std::int64_t, std::uint32_t> number_of;
  std::vector<layout::Part> parts;
  std::vector<layout::Gpu> gpus;
  std::vector<layout::Location> places;
  std::vector<layout::Billing> billings;
  std::vector<layout::Text> words;
  std::vector<std::int64_t> numbers;
  std::vector<layout::Row> rows;

  bool over = false;  // set when a limit of add() is exceeded

  // Narrows a value to two bytes of a row; sets `over` if the value is too large.
  std::uint16_t two_bytes(std::size_t n) {
    over = over || n > two_bytes_max;
    return static_cast<std::uint16_t>(n);
  }
  layout::Text put(std::string_view s) {
    constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
    over = over || s.size() > most - text.size();
    if (over) return {0, 0};
    const layout::Text out{static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(s.size())};
    text += s;
    return out;
  }
  layout::Text shared(const std::string& s) {
    const auto [at, fresh] = texts.try_emplace(s);
    if (fresh) at->second = put(s);
    return at->second;
  }
  std::uint16_t word(const std::string& s) {  // the index of a word; word 0 is ""
    const auto [at, fresh] = word_of.try_emplace(s, static_cast<std::uint32_t>(words.size()));
    if (fresh) words.push_back(shared(s));
    return two_bytes(at->second);
  }
  std::uint32_t number(std::int64_t n) {
    const auto [at, fresh] = number_of.try_emplace(n, static_cast<std::uint32_t>(numbers.size()));
    if (fresh) numbers.push_back(n);
    return at->second;
  }
  std::size_t gpu(const Offer& o) {
    const auto [at, fresh] = gpu_of.try_emplace({o.gpu, o.gpu_vendor, o.gpu_memory_bytes}, gpus.size());
    if (fresh) gpus.push_back({shared(o.gpu), shared(o.gpu_vendor), o.gpu_memory_bytes});
    return at->second;
  }
  std::size_t place(const Offer& o) {
    const std::string tags = fmt::format("{}", fmt::join(o.compliance, ","));
    const auto [at, fresh] = place_of.try_emplace({o.region, tags}, places.size());
    if (fresh) places.push_back({shared(o.region), shared(tags)});
    return at->second;
  }
  std::size_t billing(const Billing& b) {
    const auto [at, fresh] =
        billing_of.try_emplace({b.unit_s, b.minimum_s, b.minimum_micros, b.from_live}, billings.size());
    if (fresh) billings.push_back({b.unit_s, b.minimum_s, b.minimum_micros, b.from_live});
    return at->second;
  }
};

CatalogueWriter::CatalogueWriter() : tables_(std::make_unique<Tables>()) { tables_->word(""); }
CatalogueWriter::~CatalogueWriter() = default;

Result<> CatalogueWriter::add(CataloguePart part, std::span<const Offer> offers) {
  Tables& t = *tables_;
  if (t.rows.size() + offers.size() > rows_max)
    return make_error(ErrorKind::invalid, fmt::format("a catalogue holds {} offers at most", rows_max),
                      "name fewer providers or regions in the settings");
  const std::size_t first = t.rows.size();
  const layout::Part mine{t.shared(part.provider),
                          t.shared(part.scope),
                          t.shared(part.settings),
                          part.time_us,
                          static_cast<std::uint32_t>(first),
                          static_cast<std::uint32_t>(offers.size()),
                          part.unpriced,
                          t.put(part.unasked)};
  for (const Offer& o : offers) {
    layout::Row r{};
    r.id_size = t.two_bytes(o.id.size());
    r.id_at = t.put(o.id).at;
    r.gpu = t.two_bytes(t.gpu(o));
    r.place = t.two_bytes(t.place(o));
    r.billing = t.two_bytes(t.billing(o.billing));
    // a negative number becomes too large, so it is refused
    r.gpu_count = t.two_bytes(static_cast<std::size_t>(o.gpu_count));
    r.vcpus = o.vcpus;
    r.interconnect = t.word(o.interconnect);
    r.rdma = t.word(o.rdma);
    r.disk_kind = t.word(o.disk_kind);
    r.driver = t.word(o.driver);
    r.cuda_max = t.word(o.cuda_max);
    r.currency = t.word(o.currency);
    r.spot = o.spot;
    r.network_gbps = static_cast<float>(o.network_gbps);
    r.memory_bytes = t.number(o.memory_bytes);
    r.price_micros_per_hour = o.price_micros_per_hour;
    r.disk_bytes_max = t.number(o.disk_bytes_max);
    r.disk_micros_per_gb_hour = t.number(o.disk_micros_per_gb_hour);
    r.reserved_1y_micros_per_hour = t.number(o.reserved_1y_micros_per_hour);
    r.reserved_3y_micros_per_hour = t.number(o.reserved_3y_micros_per_hour);
    t.rows.push_back(r);
    if (!std::exchange(t.over, false)) continue;
    t.rows.resize(first);
    return make_error(ErrorKind::invalid,
                      fmt::format("offer {} of {} does not fit into the catalogue: the length of an id, the GPUs of a "
                                  "machine, and how many places, GPUs, billings and words there are end at {}, all "
                                  "text at 4 GiB",
                                  o.id.substr(0, 200), part.provider, Tables::two_bytes_max),
                      "name fewer regions of that provider in the settings; if it stays, report it as a bug of Rille");
  }
  t.parts.push_back(mine);
  return {};
}

std::string CatalogueWriter::finish() const {
  const Tables& t = *tables_;
  std::string body;
  const auto append = [&body](const auto& table) {
    body.append(reinterpret_cast<const char*>(table.data()), table.size() * sizeof(table[0]));
  };
  append(t.parts), append(t.gpus), append(t.places), append(t.billings), append(t.words), append(t.numbers);
  append(t.rows);
  body += t.text;
  layout::Header h{};
  std::memcpy(h.magic, layout::magic, sizeof h.magic);
  h.version = layout::version;
  h.byte_order = layout::byte_order;
  h.file_bytes = sizeof h + body.size();
  std::memcpy(h.checksum, store::fingerprint(body).xxh3.data(), sizeof h.checksum);
  h.parts = static_cast<std::uint32_t>(t.parts.size());
  h.gpus = static_cast<std::uint32_t>(t.gpus.size());
  h.places = static_cast<std::uint32_t>(t.places.size());
  h.billings = static_cast<std::uint32_t>(t.billings.size());
  h.words = static_cast<std::uint32_t>(t.words.size());
  h.numbers = static_cast<std::uint32_t>(t.numbers.size());
  h.rows = static_cast<std::uint32_t>(t.rows.size());
  h.text_bytes = t.text.size();
  return std::string(reinterpret_cast<const char*>(&h), sizeof h) + body;
}

}  // namespace rille::provider
