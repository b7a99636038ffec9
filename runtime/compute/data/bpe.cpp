#include "runtime/compute/data/bpe.hpp"

#include <algorithm>
#include <queue>
#include <tuple>

#include "runtime/compute/data/utf8.hpp"

namespace rille::data {

bool Vocabulary::join(std::int32_t a, std::int32_t b, Merge& out) const {
  if (!by_rank) {
    const auto found = merges.find(pair(a, b));
    if (found == merges.end()) return false;
    out = found->second;
    return true;
  }
  const auto found = ids.find(bytes[std::size_t(a)] + bytes[std::size_t(b)]);
  if (found == ids.end()) return false;
  out = {found->second, found->second};
  return true;
}

namespace {

struct BpePart {
  // before, after: positions of the neighbouring parts, -1: none. id -1: the part was merged into the part before it.
  std::int32_t id, before, after;
};

// A merge that was possible when it was queued; comparing `left` and `right` with the parts tells if it still is.
struct Candidate {
  std::int32_t rank, place, left, right, id;
  bool operator<(const Candidate& o) const { return std::tie(rank, place) > std::tie(o.rank, o.place); }
};

// Appends the ids of a word's characters. An unknown token is held back until a later character shows whether to fuse
// the two, as in Hugging Face's tokenizers; this holds also while characters become bytes.
void letters_of(const Vocabulary& v, std::string_view word, std::vector<std::int32_t>& out) {
  std::int32_t waiting = -1;
  const auto flush = [&] {
    if (waiting >= 0) out.push_back(waiting);
    waiting = -1;
  };
  for (std::size_t at = 0, n = 0; at < word.size(); at += n) {
    const auto c = static_cast<std::uint8_t>(word[at]);
    n = char_bytes(word, at);
    std::int32_t id = c < 0x80 ? v.of_ascii[c] : -1;
    if (c >= 0x80)
      if (const auto found = v.ids.find(word.substr(at, n)); found != v.ids.end()) id = found->second;
    const auto byte_id = [&](char b) { return v.of_byte[static_cast<std::uint8_t>(b)]; };
    const std::string_view bytes = word.substr(at, n);
    if (id >= 0) {
      flush();
      out.push_back(id);
    } else if (v.byte_fallback && std::all_of(bytes.begin(), bytes.end(), [&](char b) { return byte_id(b) >= 0; })) {
      for (const char b : bytes) out.push_back(byte_id(b));
    } else if (v.unknown >= 0) {
      if (!v.fuse_unknown) flush();
      waiting = v.unknown;
    }
  }
  flush();
}

}  // namespace

Result<> merge_word(const Vocabulary& vocabulary, std::string_view word, std::vector<std::int32_t>& out,
                    const Asked& asked) {
  constexpr std::size_t bytes_of_letter = 48, counted_from_bytes = 16 << 10;
  if (word.size() > counted_from_bytes) RILLE_CHECK(asked.needs(word.size() * bytes_of_letter));
  Pace pace(asked.look);
  std::vector<std::int32_t> letters;
  letters.reserve(word.size());
  if (vocabulary.of_characters) letters_of(vocabulary, word, letters);
  else
    for (const char c : word) letters.push_back(vocabulary.of_byte[std::uint8_t(c)]);
  const auto n = std::int32_t(letters.size());
  std::vector<BpePart> parts(letters.size());
  for (std::int32_t i = 0; i < n; ++i) parts[std::size_t(i)] = {letters[std::size_t(i)], i - 1, i + 1 < n ? i + 1 : -1};
  std::priority_queue<Candidate> queue;
  const auto offer = [&](std::int32_t place) {
    if (place < 0) return;
    const BpePart& left = parts[std::size_t(place)];
    if (left.after < 0) return;
    const std::int32_t right = parts[std::size_t(left.after)].id;
    Vocabulary::Merge m;
    if (vocabulary.join(left.id, right, m)) queue.push({m.rank, place, left.id, right, m.id});
  };
  for (std::int32_t i = 0; i + 1 < n; ++i) offer(i), pace.did(0);
  while (!queue.empty()) {
    pace.did(0);
    const Candidate c = queue.top();
    queue.pop();
    BpePart& left = parts[std::size_t(c.place)];
    if (left.id != c.left || left.after < 0 || parts[std::size_t(left.after)].id != c.right) continue;
    BpePart& right = parts[std::size_t(left.after)];
    left.id = c.id;
    left.after = right.after;
    right.id = -1;
    if (left.after >= 0) parts[std::size_t(left.after)].before = c.place;
    offer(left.before);
    offer(c.place);
  }
  for (std::int32_t i = 0; i >= 0 && i < n; i = parts[std::size_t(i)].after) out.push_back(parts[std::size_t(i)].id);
  return success();
}

}  // namespace rille::data
