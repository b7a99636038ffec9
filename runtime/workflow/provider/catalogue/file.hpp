// The catalogue: offers in one memory-mapped file. Rows of fixed width, tables of shared values (GPUs, places,
// billings, words), and a pool of text; docs/design/catalogue.md draws it. The rows are grouped in parts: one part per
// provider and query, with the time of the provider's answer.
//
// Opening a file that is damaged, of another version or no catalogue is an error of kind integrity; the cache then
// ignores the file. Wrong bytes can make a reader miss rows or return wrong values, never crash. Any thread; one object
// belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/store/file.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

struct CataloguePart {
  std::string provider;
  std::string scope;                   // scope_of() the query (cache.hpp)
  std::string settings;                // a fingerprint of the provider's configuration
  std::int64_t time_us = 0;            // wall time of the provider's answer
  std::uint32_t first = 0, count = 0;  // index of the part's first row, and number of rows; set by the writer
  std::int64_t unpriced = 0;           // number of matching types without a known price
  std::string unasked;                 // regions that did not answer, as text written by cache.cpp; "": none
};

class CatalogueWriter {
 public:
  CatalogueWriter();
  ~CatalogueWriter();
  // All offers must be from part.provider. Error invalid, and nothing is added, if a limit is exceeded: rows_max rows;
  // 65,535 for the bytes of an id, the GPUs of an offer, and the number of different places, GPUs, billings and names;
  // 4 GiB of text.
  Result<> add(CataloguePart part, std::span<const Offer> offers);
  std::string finish() const;
  static constexpr std::size_t rows_max = 2'000'000;

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

class Catalogue {
 public:
  // Error io: there is no file; integrity: the file is damaged.
  static Result<Catalogue> open(const std::string& path);
  static Result<Catalogue> from_bytes(std::string_view bytes);  // copies the bytes
  Catalogue(Catalogue&&) noexcept;
  Catalogue& operator=(Catalogue&&) noexcept;
  ~Catalogue();

  const std::vector<CataloguePart>& parts() const { return parts_; }
  std::size_t rows() const;
  std::vector<Offer> offers(const CataloguePart& part) const;  // all offers of the part

  struct Found {
    std::vector<Offer> offers;  // best first by the query's rank
    std::size_t matching = 0;   // number of matching offers, also beyond the limit
  };
  // The offers in these parts (indexes into parts()) that satisfy Offer::matches; at most `limit`, 0: all.
  Found find(std::span<const std::size_t> parts, const OfferQuery& query, std::size_t limit = 0) const;

 private:
  struct View;
  Catalogue();
  static Result<Catalogue> check(std::unique_ptr<View> view);
  std::unique_ptr<View> view_;
  std::vector<CataloguePart> parts_;
};

}  // namespace rille::provider
