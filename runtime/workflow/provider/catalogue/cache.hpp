// The latest offers of each provider: $RILLE_HOME/cache/offers. The caller says how old an answer may be; an answer
// that is older, belongs to other settings or was for a narrower query is not used. Errors are not cached, except
// unreachable regions, for Manner::silence_ms. The file can be lost: a damaged one counts as missing and is written
// again. One thread at a time. open() and store() block on the disk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/workflow/provider/catalogue/file.hpp"

namespace rille::provider {

// A configured provider and a fingerprint of its settings and environment: another region or account is another source.
// The name of a credentials file is part of the fingerprint, its contents are not.
struct OfferSource {
  std::string provider, settings;
};

// The settings file as a whole; see providers.hpp. Path "": no settings.
struct OfferSettings {
  std::vector<OfferSource> sources;
  Rates rates;
  DiskPrices disk_prices;
};
Result<OfferSettings> read_offer_settings(const std::string& settings_file);  // io, config

// The part of a query that a provider's answer depends on, as text. It omits what Rille filters itself (prices,
// compliance, rank), so one answer serves many queries.
std::string scope_of(const OfferQuery& query);
// The query to send for an answer that will be cached.
OfferQuery to_be_kept(OfferQuery query);
// Whether an answer to `scope` covers the query. The answer of a provider with Manner::narrow covers only the identical
// query.
bool covers(const std::string& provider, const std::string& scope, const OfferQuery& query);

class OfferCache {
 public:
  explicit OfferCache(std::string home);

  // The newest answer of that source that covers the query and is at most max_age_us old: an index into parts().
  std::optional<std::size_t> fresh(const OfferSource& source, const OfferQuery& query, std::int64_t now_us,
                                   std::int64_t max_age_us) const;
  const CataloguePart& part(std::size_t n) const { return catalogue_->parts()[n]; }
  // The regions of that part that were not reached. Region "": the whole provider.
  std::vector<AskedRegion> unasked(std::size_t n) const;
  Catalogue::Found find(std::span<const std::size_t> parts, const OfferQuery& query, std::size_t limit) const;

  struct Answer {
    OfferSource source;
    std::vector<Offer> offers;
    std::int64_t unpriced = 0;  // as in LeftOut
    std::vector<AskedRegion> unasked = {};
  };
  // Stores the answers to to_be_kept(query), replaces what they supersede, and drops old parts. An incomplete answer is
  // stored only with its missing regions, so that it is not taken for a complete one.
  Result<> store(std::vector<Answer> answers, const OfferQuery& query, std::int64_t now_us);

 private:
  std::string path_;
  std::optional<Catalogue> catalogue_;
};

}  // namespace rille::provider
