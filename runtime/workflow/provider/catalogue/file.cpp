#include "runtime/workflow/provider/catalogue/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "runtime/core/base/text.hpp"
#include "runtime/core/store/hash.hpp"
#include "runtime/workflow/provider/catalogue/known.hpp"
#include "runtime/workflow/provider/catalogue/layout.hpp"
#include "runtime/workflow/provider/catalogue/rank.hpp"
#include "runtime/workflow/provider/gpus.hpp"

namespace rille::provider {

// The tables, which are read where they lie: in the mapped file, or in a copy of the bytes.
struct Catalogue::View {
  store::MappedFile file;
  std::vector<std::uint64_t> copy;  // 8-byte elements, so that the tables are aligned
  std::string_view bytes;
  std::span<const layout::Part> parts;
  std::span<const layout::Gpu> gpus;
  std::span<const layout::Location> places;
  std::span<const layout::Billing> billings;
  std::span<const layout::Text> words;
  std::span<const std::int64_t> numbers;
  std::span<const layout::Row> rows;
  std::string_view pool;

  std::string_view text(layout::Text t) const {
    return t.at <= pool.size() && t.size <= pool.size() - t.at ? pool.substr(t.at, t.size) : std::string_view();
  }
  std::string_view word(std::uint16_t n) const { return n < words.size() ? text(words[n]) : std::string_view(); }
  std::int64_t number(std::uint32_t n) const { return n < numbers.size() ? numbers[n] : 0; }
  std::vector<std::string> tags(const layout::Location& place) const;
  Offer offer(const layout::Row& row, const std::string& provider) const;
  std::span<const layout::Row> rows_of(const CataloguePart& part) const {
    const std::size_t first = std::min<std::size_t>(part.first, rows.size());
    return rows.subspan(first, std::min<std::size_t>(part.count, rows.size() - first));
  }
};

namespace {

Error unsound(const std::string& what) {
  return make_error(ErrorKind::integrity, "the catalogue of offers is " + what, "`rille offers` writes it again");
}

// Removes n elements of type T from the front of `rest` and returns them in `out`; false: too few bytes.
template <class T>
bool take(std::string_view& rest, std::uint64_t n, std::span<const T>& out) {
  if (n > rest.size() / sizeof(T)) return false;
  out = {reinterpret_cast<const T*>(rest.data()), static_cast<std::size_t>(n)};
  rest.remove_prefix(static_cast<std::size_t>(n) * sizeof(T));
  return true;
}

}  // namespace

Catalogue::Catalogue() = default;
Catalogue::Catalogue(Catalogue&&) noexcept = default;
Catalogue& Catalogue::operator=(Catalogue&&) noexcept = default;
Catalogue::~Catalogue() = default;

std::size_t Catalogue::rows() const { return view_->rows.size(); }

Result<Catalogue> Catalogue::open(const std::string& path) {
  auto view = std::make_unique<View>();
  RILLE_TRY(view->file, store::MappedFile::open(path));
  view->bytes = view->file.view();
  return check(std::move(view));
}

Result<Catalogue> Catalogue::from_bytes(std::string_view bytes) {
  auto view = std::make_unique<View>();
  view->copy.resize(bytes.size() / sizeof(std::uint64_t) + 1);
  std::memcpy(view->copy.data(), bytes.data(), bytes.size());
  view->bytes = {reinterpret_cast<const char*>(view->copy.data()), bytes.size()};
  return check(std::move(view));
}

Result<Catalogue> Catalogue::check(std::unique_ptr<View> view) {
  layout::Header h;
  if (view->bytes.size() < sizeof h) return unsound("too short");
  std::memcpy(&h, view->bytes.data(), sizeof h);
  if (std::memcmp(h.magic, layout::magic, sizeof h.magic) != 0) return unsound("another file");
  if (h.version != layout::version || h.byte_order != layout::byte_order) return unsound("of another version");
  std::string_view rest = view->bytes.substr(sizeof h);
  if (h.file_bytes != view->bytes.size()) return unsound("torn");
  const std::string sum = store::fingerprint(rest).xxh3;
  if (sum.size() != sizeof h.checksum || std::memcmp(sum.data(), h.checksum, sum.size()) != 0)
    return unsound("damaged");
  const bool whole = h.unused == 0 && take(rest, h.parts, view->parts) && take(rest, h.gpus, view->gpus) &&
                     take(rest, h.places, view->places) && take(rest, h.billings, view->billings) &&
                     take(rest, h.words, view->words) && take(rest, h.numbers, view->numbers) &&
                     take(rest, h.rows, view->rows) && rest.size() == h.text_bytes;
  if (!whole) return unsound("not what its header says");
  view->pool = rest;
  Catalogue out;
  for (const layout::Part& p : view->parts)
    out.parts_.push_back({std::string(view->text(p.provider)), std::string(view->text(p.scope)),
                          std::string(view->text(p.settings)), p.time_us, p.first, p.count,
                          std::max<std::int64_t>(p.unpriced, 0), std::string(view->text(p.unasked))});
  out.view_ = std::move(view);
  return out;
}

std::vector<std::string> Catalogue::View::tags(const layout::Location& place) const {
  std::vector<std::string> out;
  std::string_view left = text(place.compliance);
  while (!left.empty()) {
    const std::size_t comma = std::min(left.find(','), left.size());
    if (comma > 0) out.emplace_back(left.substr(0, comma));
    left.remove_prefix(std::min(comma + 1, left.size()));
  }
  return out;
}

Offer Catalogue::View::offer(const layout::Row& row, const std::string& provider) const {
  Offer o;
  o.provider = provider;
  o.id = text({row.id_at, row.id_size});
  if (row.gpu < gpus.size()) {
    o.gpu = text(gpus[row.gpu].model);
    o.gpu_vendor = text(gpus[row.gpu].vendor);
    o.gpu_memory_bytes = gpus[row.gpu].memory_bytes;
  }
  if (row.place < places.size()) {
    o.region = text(places[row.place].region);
    o.compliance = tags(places[row.place]);
  }
  if (row.billing < billings.size()) {
    const layout::Billing& b = billings[row.billing];
    o.billing = {std::max<std::int64_t>(b.unit_s, 1), b.minimum_s, b.minimum_micros, b.from_live != 0};
  }
  o.gpu_count = row.gpu_count;
  o.vcpus = row.vcpus;
  o.memory_bytes = number(row.memory_bytes);
  o.spot = row.spot != 0;
  o.price_micros_per_hour = std::max(row.price_micros_per_hour, price_unknown);
  o.reserved_1y_micros_per_hour = std::max(number(row.reserved_1y_micros_per_hour), price_unknown);
  o.reserved_3y_micros_per_hour = std::max(number(row.reserved_3y_micros_per_hour), price_unknown);
  o.currency = word(row.currency);
  o.disk_bytes_max = number(row.disk_bytes_max);
  o.disk_micros_per_gb_hour = number(row.disk_micros_per_gb_hour);
  o.interconnect = word(row.interconnect);
  o.rdma = word(row.rdma);
  o.disk_kind = word(row.disk_kind);
  o.driver = word(row.driver);
  o.cuda_max = word(row.cuda_max);
  o.network_gbps = row.network_gbps;
  return o;
}

std::vector<Offer> Catalogue::offers(const CataloguePart& part) const {
  std::vector<Offer> out;
  for (const layout::Row& row : view_->rows_of(part)) out.push_back(view_->offer(row, part.provider));
  return out;
}

namespace {

// Whether each entry of the tables satisfies the query, computed once, so that a row is checked by a few lookups.
struct Verdicts {
  std::vector<char> gpu, place, interconnect, rdma, disk;
  std::vector<std::vector<int>> counts;  // allowed numbers of GPUs for each entry of the GPU table; empty: any number
  std::vector<double> rate;              // dollars per unit of each currency, by word index; 0: unknown
  std::vector<GpuWorth> worth;
  bool no_gpu = false, cpu = false;  // no_gpu: machines without a GPU match; cpu: no other machine matches
};

struct Hit {
  double merit;
  std::uint32_t part, row;
  friend bool operator<(const Hit& a, const Hit& b) {
    return std::tie(a.merit, a.part, a.row) < std::tie(b.merit, b.part, b.row);
  }
};

std::vector<int> counts_of(const OfferQuery& query, std::string_view model, std::int64_t memory_bytes) {
  std::vector<int> out;
  for (const GpuWish& one : query.gpus) {
    if (!gpu_matches(model, memory_bytes, one.model)) continue;
    if (one.count == 0) return {};
    out.push_back(one.count);
  }
  return out;
}

bool judge(const layout::Row& r, const OfferQuery& q, const Verdicts& v, std::int64_t memory, double& merit_out) {
  if (r.gpu >= v.gpu.size() || r.place >= v.place.size() || r.currency >= v.rate.size() ||
      r.interconnect >= v.interconnect.size() || r.rdma >= v.rdma.size() || r.disk_kind >= v.disk.size())
    return false;
  if (!v.disk[r.disk_kind]) return false;
  if (r.gpu_count == 0 ? !v.no_gpu : v.cpu || !v.gpu[r.gpu]) return false;
  if (q.count > 0 && !v.cpu && r.gpu_count != q.count) return false;
  if (!q.gpus.empty() && !v.counts[r.gpu].empty() &&
      std::find(v.counts[r.gpu].begin(), v.counts[r.gpu].end(), r.gpu_count) == v.counts[r.gpu].end())
    return false;
  if (r.vcpus < q.vcpus || memory < q.memory_bytes || !v.place[r.place]) return false;
  if (r.network_gbps < static_cast<float>(q.network_gbps)) return false;
  if (!v.interconnect[r.interconnect] && !v.rdma[r.rdma]) return false;
  const Micros dollars = convert(r.price_micros_per_hour, v.rate[r.currency]);
  if (q.max_price_micros_per_hour && (dollars < 0 || dollars > *q.max_price_micros_per_hour)) return false;
  merit_out = merit(q.rank, dollars, r.gpu_count, v.worth[r.gpu]);
  return true;
}

}  // namespace

Catalogue::Found Catalogue::find(std::span<const std::size_t> parts, const OfferQuery& query, std::size_t limit) const {
  const View& view = *view_;
  Verdicts v;
  const std::string asked = lower_case(query.gpu);
  v.cpu = asked == "cpu";
  for (const layout::Gpu& g : view.gpus) {
    const std::string_view model = view.text(g.model);
    v.gpu.push_back(query.accepts_gpu(model, g.memory_bytes) &&
                    (query.gpu_vendor.empty() || view.text(g.vendor) == query.gpu_vendor) &&
                    (!query.runnable || runs_plugin(model, g.memory_bytes)));
    v.counts.push_back(counts_of(query, model, g.memory_bytes));
    v.worth.push_back(query.rank == Rank::price ? GpuWorth() : gpu_worth(query, model, g.memory_bytes));
  }
  for (const layout::Location& p : view.places) {
    const std::vector<std::string> tags = view.tags(p);
    const auto has = [&tags](const std::string& t) { return std::find(tags.begin(), tags.end(), t) != tags.end(); };
    v.place.push_back(query.accepts_region(view.text(p.region)) &&
                      std::all_of(query.compliance.begin(), query.compliance.end(), has));
  }
  for (const layout::Text& w : view.words) {
    const std::string word(view.text(w));
    v.rate.push_back(rate_of(word, query.rates));
    v.interconnect.push_back(query.interconnect.empty() || has_interconnect(word, "", query.interconnect));
    v.disk.push_back(query.disk_kind.empty() || word == query.disk_kind);
    v.rdma.push_back(query.interconnect.empty() || has_interconnect("", word, query.interconnect));
  }
  std::vector<Hit> hits;
  for (const std::size_t n : parts) {
    if (n >= parts_.size() || !query.accepts_provider(parts_[n].provider)) continue;
    v.no_gpu = query.accepts_no_gpu() && (!query.runnable || is_own_cpu(parts_[n].provider));
    const std::span<const layout::Row> rows = view.rows_of(parts_[n]);
    double m = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (judge(rows[i], query, v, view.number(rows[i].memory_bytes), m))
        hits.push_back({m, static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(i)});
  }
  Found out;
  out.matching = hits.size();
  const std::size_t wanted = limit == 0 ? hits.size() : std::min(limit, hits.size());
  std::partial_sort(hits.begin(), hits.begin() + static_cast<std::ptrdiff_t>(wanted), hits.end());
  for (std::size_t i = 0; i < wanted; ++i) {
    const CataloguePart& part = parts_[hits[i].part];
    out.offers.push_back(view.offer(view.rows_of(part)[hits[i].row], part.provider));
  }
  return out;
}

}  // namespace rille::provider
