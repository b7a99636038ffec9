// The suggestion in an error about a misspelled word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rille {

// The candidate with the fewest edits from `word` (Damerau-Levenshtein distance, at most a third of the word's length);
// "" if none is that near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace rille
