// The offers of this home as they were last told: $RILLE_HOME/cache/offers. Who asks says how old an answer may be;
// what is older, of other settings, or was asked for less is not used. Errors are not kept, but for places that were
// not reached, of a provider whose Manner says for how long (silence_ms). Losing the file loses nothing but time: one
// that is not sound counts as none, and is written anew.
// One thread at a time. open() and store() block on the disk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/workflow/provider/catalogue/file.hpp"

namespace rille::provider {

// A provider that is set up, and a fingerprint of how, by its settings and the environment: another region or account
// is another source. What a file of credentials says is not part of it, its name is.
struct OfferSource {
  std::string provider, settings;
};

// What a settings file says beside each provider's own part; see providers.hpp. Those of "": none.
struct OfferSettings {
  std::vector<OfferSource> sources;
  Rates rates;
  DiskPrices disk_prices;
};
Result<OfferSettings> read_offer_settings(const std::string& settings_file);  // io, config

// The part of a query that a provider's answer depends on, as text. What Rille sorts out itself (prices, rules, order)
// is not in it, so one answer serves many queries.
std::string scope_of(const OfferQuery& query);
// What to ask a provider whose answer is to be kept.
OfferQuery to_be_kept(OfferQuery query);
// Whether an answer to `scope` holds all that the query wants of that provider. Some list only what is nearest to the
// question, or cut their machines to it: theirs serve the same question alone.
bool covers(const std::string& provider, const std::string& scope, const OfferQuery& query);

class OfferCache {
 public:
  explicit OfferCache(std::string home);

  // The newest answer of that source for the query that is at most max_age_us old: an index into parts().
  std::optional<std::size_t> fresh(const OfferSource& source, const OfferQuery& query, std::int64_t now_us,
                                   std::int64_t max_age_us) const;
  const CataloguePart& part(std::size_t n) const { return catalogue_->parts()[n]; }
  // Of that part: who was not reached. Region "": all of the provider.
  std::vector<AskedRegion> unasked(std::size_t n) const;
  Catalogue::Found find(std::span<const std::size_t> parts, const OfferQuery& query, std::size_t limit) const;

  struct Answer {
    OfferSource source;
    std::vector<Offer> offers;
    std::int64_t unpriced = 0;  // what it leaves out: LeftOut
    std::vector<AskedRegion> unasked = {};
  };
  // Puts the answers to to_be_kept(query) in the place of what they make superfluous, and drops what is old. A part of
  // an answer is not kept, or it would be taken for the whole, but where what is missing is kept beside it.
  Result<> store(std::vector<Answer> answers, const OfferQuery& query, std::int64_t now_us);

 private:
  std::string path_;
  std::optional<Catalogue> catalogue_;
};

}  // namespace rille::provider
