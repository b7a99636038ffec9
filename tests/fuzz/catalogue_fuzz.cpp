// Whatever a catalogue's bytes say, reading and searching it stays within them. Nearly every change breaks the
// checksum: it is set right once more, so that the changes reach the tables.
#include <cstring>
#include <vector>

#include "runtime/core/store/hash.hpp"
#include "runtime/workflow/provider/catalogue/file.hpp"
#include "runtime/workflow/provider/catalogue/layout.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/unit/provider/catalogue_offers.hpp"

using namespace rille::provider;

namespace {

void check(std::string_view bytes) {
  const auto catalogue = Catalogue::from_bytes(bytes);
  if (!catalogue) {
    fuzz_check(catalogue.error().kind == rille::ErrorKind::integrity, "a refusal is an integrity error");
    return;
  }
  OfferQuery query;
  query.rank = Rank::price_per_tflop;
  query.interconnect = "nvlink";
  std::vector<std::size_t> parts;
  for (std::size_t i = 0; i < std::min<std::size_t>(catalogue->parts().size(), 8); ++i) {
    parts.push_back(i);
    for (const Offer& o : catalogue->offers(catalogue->parts()[i]))
      fuzz_check(o.price_micros_per_hour >= -1, "a price");
  }
  const Catalogue::Found found = catalogue->find(parts, query, 3);
  fuzz_check(found.offers.size() <= 3 && found.matching >= found.offers.size(), "at most what was asked for");
  (void)catalogue->find(parts, {}, 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  check(file);
  layout::Header header;
  if (size < sizeof header) return 0;
  std::memcpy(&header, file.data(), sizeof header);
  std::memcpy(header.magic, layout::magic, sizeof header.magic);
  header.version = layout::version;
  header.byte_order = layout::byte_order;
  header.file_bytes = size;
  const std::string sum = rille::store::fingerprint(std::string_view(file).substr(sizeof header)).xxh3;
  std::memcpy(header.checksum, sum.data(), sizeof header.checksum);
  // What the tables do not fill is text.
  const std::uint64_t tables =
      std::uint64_t{header.parts} * sizeof(layout::Part) + std::uint64_t{header.gpus} * sizeof(layout::Gpu) +
      std::uint64_t{header.places} * sizeof(layout::Location) +
      std::uint64_t{header.billings} * sizeof(layout::Billing) + std::uint64_t{header.words} * sizeof(layout::Text) +
      std::uint64_t{header.numbers} * sizeof(std::int64_t) + std::uint64_t{header.rows} * sizeof(layout::Row);
  if (tables <= size - sizeof header) header.text_bytes = size - sizeof header - tables;
  std::memcpy(file.data(), &header, sizeof header);
  check(file);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const std::size_t rows : {0, 1, 12}) {
    CatalogueWriter writer;
    CataloguePart part;
    part.provider = "aws";
    part.scope = "{}";
    (void)writer.add(part, test::random_offers(rows, 1, "aws", false));
    part.provider = "vast";
    (void)writer.add(part, test::random_offers(rows / 2, 2, "vast", true));
    seeds.push_back(writer.finish());
  }
  return seeds;
}

std::vector<std::string> fuzz_words() {
  return {"\xff\xff\xff\xff", std::string(4, '\0'), std::string(8, '\xff'), "nvlink", "USD", "CNY", "A100", "gdpr,",
          "RILLECAT"};
}
