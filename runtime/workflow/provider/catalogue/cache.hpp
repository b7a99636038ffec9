// The latest offers of each provider, in the file $RILLE_HOME/cache/offers. The caller says how old an answer may be;
// an answer that is older, was made with other settings or for a narrower query is not used. Errors are not cached,
// except unreachable regions, for Manner::silence_ms. The file may be lost: a damaged file counts as missing and is
// written again. One thread at a time. open() and store() block on the disk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/workflow/provider/catalogue/file.hpp"

namespace rille::provider {

// A configured provider, and in `settings` a fingerprint of the provider's settings and environment variables: with
// another region or account, cached answers are not reused. The fingerprint includes the name of a credentials file,
// not the contents.
struct OfferSource {
  std::string provider, settings;
};

// The content of the settings file (providers.hpp) that offers depend on. Path "": no settings.
struct OfferSettings {
  std::vector<OfferSource> sources;
  Rates rates;
  DiskPrices disk_prices;
};
Result<OfferSettings> read_offer_settings(const std::string& settings_file);  // io, config

// The fields of a query that a provider's answer depends on, as text. Fields that Rille filters by itself (prices,
// compliance, rank) are left out, so one cached answer serves many queries.
std::string scope_of(const OfferQuery& query);
// The query to send instead of `query`, so that the cached answer serves further queries.
OfferQuery to_be_kept(OfferQuery query);
// Whether a cached answer for `scope` contains all offers that the query wants. With Manner::narrow, an answer serves
// only the identical query.
bool covers(const std::string& provider, const std::string& scope, const OfferQuery& query);

class OfferCache {
 public:
  explicit OfferCache(std::string home);

  // The number, for part(), of the newest answer of that source that covers the query and is at most max_age_us old.
  std::optional<std::size_t> fresh(const OfferSource& source, const OfferQuery& query, std::int64_t now_us,
                                   std::int64_t max_age_us) const;
  const CataloguePart& part(std::size_t n) const { return catalogue_->parts()[n]; }
  // The regions that did not answer when part n was stored. Region "": the whole provider.
  std::vector<AskedRegion> unasked(std::size_t n) const;
  Catalogue::Found find(std::span<const std::size_t> parts, const OfferQuery& query, std::size_t limit) const;

  struct Answer {
    OfferSource source;
    std::vector<Offer> offers;
    std::int64_t unpriced = 0;  // number of matching types without a known price
    std::vector<AskedRegion> unasked = {};
  };
  // Stores the answers to to_be_kept(query), replaces older answers to that query or with other settings, and drops the
  // oldest. An incomplete answer is stored together with its missing regions, so that it does not pass as complete.
  Result<> store(std::vector<Answer> answers, const OfferQuery& query, std::int64_t now_us);

 private:
  std::string path_;
  std::optional<Catalogue> catalogue_;
};

}  // namespace rille::provider
