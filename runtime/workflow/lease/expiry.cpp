#include "runtime/workflow/lease/expiry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/time.hpp"
#include "runtime/workflow/lease/terms.hpp"

namespace rille::lease {

constexpr std::int64_t shortened_us = 1'000'000;  // the ttl counts as shortened if the difference is larger than this

Error ttl_over(const Lease& l) {
  Error e = make_error(
      ErrorKind::state, fmt::format("the ttl of '{}' has passed ({})", l.name, format_utc(l.expires_us)),
      "the ttl counts for the whole lease, also after its machine was replaced; rent again with a longer ttl");
  const Result<Terms> terms = read_terms(l.options);
  // How much a budget has shortened the ttl. Only used for the first generation, whose expiry replacements keep.
  const std::int64_t short_us = terms ? l.created_us + terms->ttl_ms * 1000 - l.expires_us : 0;
  const auto was_ready = [](const Tenure& t) { return t.ready_us != 0; };
  if (l.detached) e.hint = "box:detach set that end: detach it for longer next time";
  else if (terms && l.generation == 1 && short_us > shortened_us)
    e.hint = fmt::format("a budget had money for {} of the {} that were asked for: raise it, or rent what costs less",
                         format_duration_ms((l.expires_us - l.created_us) / 1000), format_duration_ms(terms->ttl_ms));
  else if (terms && l.ever_lived() && std::none_of(l.tenures.begin(), l.tenures.end(), was_ready))
    e.hint = fmt::format(
        "its machine had not come up within {}: a cloud's takes some minutes before it can be used; "
        "rent it with a ttl like \"1h\"",
        format_duration_ms((l.expires_us - l.created_us) / 1000));
  else if (terms)
    e.hint = fmt::format("it was rented for {}: rent it for as long as it is needed, as in ttl = \"{}\"",
                         format_duration_ms(terms->ttl_ms), format_duration_ms(terms->ttl_ms * 2));
  e.code = "ttl_over";
  e.resource = l.id;
  return e;
}

}  // namespace rille::lease
