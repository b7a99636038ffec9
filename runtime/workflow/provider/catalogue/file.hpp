// The catalogue: offers in one memory-mapped file. Rows of fixed width, tables of shared values (GPUs, places,
// billings, words), and a pool of text; docs/design/catalogue.md draws it. One part per provider and query, each with
// the time of its answer.
//
// A file that is damaged, of another version, or of another kind is `integrity`; the cache then ignores it. Wrong bytes
// can only make a reader miss rows or return wrong ones. Any thread; one object belongs to one thread at a time.
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
  std::string scope;                   // the query's scope: cache.hpp
  std::string settings;                // a fingerprint of the provider's configuration
  std::int64_t time_us = 0;            // of the answer
  std::uint32_t first = 0, count = 0;  // its rows; the writer sets them
  std::int64_t unpriced = 0;           // as in LeftOut
  std::string unasked;                 // as in LeftOut, in the form of cache.cpp; "": none
};

class CatalogueWriter {
 public:
  CatalogueWriter();
  ~CatalogueWriter();
  // All offers are the part's provider's. invalid, and nothing is added: more rows than rows_max; an id of 65,536 bytes
  // or that many GPUs; that many places, kinds of GPU, billings or words in total; or 4 GiB of text.
  Result<> add(CataloguePart part, std::span<const Offer> offers);
  std::string finish() const;
  static constexpr std::size_t rows_max = 2'000'000;

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

class Catalogue {
 public:
  // io: no file; integrity: a damaged one.
  static Result<Catalogue> open(const std::string& path);
  static Result<Catalogue> from_bytes(std::string_view bytes);  // copies the bytes
  Catalogue(Catalogue&&) noexcept;
  Catalogue& operator=(Catalogue&&) noexcept;
  ~Catalogue();

  const std::vector<CataloguePart>& parts() const { return parts_; }
  std::size_t rows() const;
  std::vector<Offer> offers(const CataloguePart& part) const;  // all of them

  struct Found {
    std::vector<Offer> offers;  // best first by the query's rank
    std::size_t matching = 0;   // without the limit
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
