#include "runtime/core/base/did_you_mean.hpp"

#include <algorithm>
#include <utility>

namespace rille {

namespace {

// Optimal string alignment distance: an exchange of two adjacent letters counts as one edit.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + cost});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string lower(std::string_view word) {
  std::string out(word);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// The longest candidate that is a part of the word: "spot" of "use_spot".
std::string part_of(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr std::size_t shortest = 3;
  const std::string parts = "_" + word + "_";
  std::string found;
  for (const std::string& candidate : candidates)
    if (candidate.size() >= shortest && candidate.size() > found.size() &&
        parts.find("_" + lower(candidate) + "_") != parts.npos)
      found = candidate;
  return found;
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t size_max = 100;  // the distance takes quadratic time
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string found;
  if (word.size() > size_max) return found;
  if (word.size() == 1) best = 1;          // any other letter is one edit away
  const std::string wanted = lower(word);  // "AdamW" means "adamw"
  for (const std::string& candidate : candidates) {
    if (candidate.size() > size_max) continue;
    std::size_t d = edit_distance(wanted, lower(candidate));
    if (d < best) best = d, found = candidate;
  }
  return found.empty() ? part_of(wanted, candidates) : found;
}

}  // namespace rille
