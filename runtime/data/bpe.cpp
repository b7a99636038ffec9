#include "runtime/data/bpe.hpp"

#include <queue>
#include <tuple>

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

struct Part {
  std::int32_t id, before, after;      // neighbours by place; -1: none. id -1: joined to the one before
};

// A join that was possible when it was put in; the ids tell whether it still is.
struct Candidate {
  std::int32_t rank, place, left, right, id;
  bool operator<(const Candidate& o) const { return std::tie(rank, place) > std::tie(o.rank, o.place); }
};

}  // namespace

void merge_word(const Vocabulary& vocabulary, std::string_view word, std::vector<std::int32_t>& out) {
  const auto n = std::int32_t(word.size());
  std::vector<Part> parts(word.size());
  for (std::int32_t i = 0; i < n; ++i)
    parts[std::size_t(i)] = {vocabulary.of_byte[std::uint8_t(word[std::size_t(i)])], i - 1, i + 1 < n ? i + 1 : -1};
  std::priority_queue<Candidate> queue;
  const auto offer = [&](std::int32_t place) {
    if (place < 0) return;
    const Part& left = parts[std::size_t(place)];
    if (left.after < 0) return;
    const std::int32_t right = parts[std::size_t(left.after)].id;
    Vocabulary::Merge m;
    if (vocabulary.join(left.id, right, m)) queue.push({m.rank, place, left.id, right, m.id});
  };
  for (std::int32_t i = 0; i + 1 < n; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate c = queue.top();
    queue.pop();
    Part& left = parts[std::size_t(c.place)];
    if (left.id != c.left || left.after < 0 || parts[std::size_t(left.after)].id != c.right) continue;
    Part& right = parts[std::size_t(left.after)];
    left.id = c.id;
    left.after = right.after;
    right.id = -1;
    if (left.after >= 0) parts[std::size_t(left.after)].before = c.place;
    offer(left.before);
    offer(c.place);
  }
  for (std::int32_t i = 0; i >= 0 && i < n; i = parts[std::size_t(i)].after) out.push_back(parts[std::size_t(i)].id);
}

}  // namespace rille::data
