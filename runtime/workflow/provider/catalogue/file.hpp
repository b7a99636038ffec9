// The catalogue: what providers have offered, in one file that is mapped, not read. Rows of fixed width, tables of what
// many rows share (GPUs, places, billings, words), and a pool of text; docs/design/catalogue.md draws it. One part per
// provider and question, each with the time of its answer.
//
// A file that is torn, of another version, or not ours is `integrity`; whoever keeps a cache then does without it. No
// bytes, however wrong, make a reader do more than miss rows or show odd ones.
// Any thread; one object belongs to one thread at a time.
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
  std::string scope;                   // what was asked for: cache.hpp
  std::string settings;                // a fingerprint of what the provider was set up with
  std::int64_t time_us = 0;            // of the answer
  std::uint32_t first = 0, count = 0;  // its rows; the writer sets them
  std::int64_t unpriced = 0;           // what the answer left out: LeftOut
  std::string unasked;                 // the same, as cache.cpp writes it; "": nobody
};

class CatalogueWriter {
 public:
  CatalogueWriter();
  ~CatalogueWriter();
  // Their provider is the part's. invalid, and nothing is added: more rows than rows_max, or what no offer has: an id
  // of 65,536 bytes, or so many GPUs, or as many places, kinds of GPU, billings or words in all, or 4 GiB of text.
  Result<> add(CataloguePart part, std::span<const Offer> offers);
  std::string finish() const;
  static constexpr std::size_t rows_max = 2'000'000;

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

class Catalogue {
 public:
  // io: there is none; integrity: no sound one.
  static Result<Catalogue> open(const std::string& path);
  static Result<Catalogue> from_bytes(std::string_view bytes);  // copies them
  Catalogue(Catalogue&&) noexcept;
  Catalogue& operator=(Catalogue&&) noexcept;
  ~Catalogue();

  const std::vector<CataloguePart>& parts() const { return parts_; }
  std::size_t rows() const;
  std::vector<Offer> offers(const CataloguePart& part) const;  // all of them

  struct Found {
    std::vector<Offer> offers;  // best first by the query's rank
    std::size_t matching = 0;   // of which these are the first
  };
  // Those of these parts, indexes into parts(), that match as Offer::matches says; at most `limit`, 0: all.
  Found find(std::span<const std::size_t> parts, const OfferQuery& query, std::size_t limit = 0) const;

 private:
  struct View;
  Catalogue();
  static Result<Catalogue> check(std::unique_ptr<View> view);
  std::unique_ptr<View> view_;
  std::vector<CataloguePart> parts_;
};

}  // namespace rille::provider
