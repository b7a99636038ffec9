#include "runtime/compute/data/tokenizer.hpp"

#include <fmt/format.h>

#include "runtime/compute/data/tokenizer_state.hpp"

namespace rille::data {

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::twin() const { return Tokenizer(std::make_unique<State>(*state_)); }

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text, const Encoding& how) {
  State& state = *state_;
  struct Forgets {
    Asked& asked;
    ~Forgets() { asked = {}; }
  } forgets{state.asked};
  state.asked = how.asked;
  std::vector<std::int32_t> out;
  if (how.before) out = state.before;
  RILLE_CHECK(state.in_raw.split(
      text, how.special,
      [&](std::string_view piece) -> Result<> {
        const Start begin = how.continued ? Start::continued : Start::text;
        return state.encode_piece(piece, piece.data() == text.data() ? begin : Start::token, how.special, out);
      },
      [&](std::int32_t id) { out.push_back(id); }, state.asked));
  if (how.behind) out.insert(out.end(), state.behind.begin(), state.behind.end());
  return out;
}

Result<std::string> Tokenizer::decode(std::span<const std::int32_t> ids, bool continued, const Asked& asked) const {
  const auto& all = state_->vocabulary;
  std::string out;
  std::vector<std::string> tokens;
  std::size_t bytes = 0;
  for (const std::int32_t id : ids) {
    if (id < 0 || std::size_t(id) >= all.bytes.size() || !all.known[std::size_t(id)])
      return make_error(ErrorKind::invalid,
                        fmt::format("there is no token {}; this vocabulary has {} ids", id, size()));
    bytes += all.bytes[std::size_t(id)].size();
  }
  constexpr std::size_t token_bytes = 48;
  RILLE_CHECK(asked.needs(all.of_characters ? 2 * bytes + token_bytes * ids.size() : bytes));
  for (const std::int32_t id : ids) {
    if (all.of_characters) tokens.push_back(all.bytes[std::size_t(id)]);
    else out += all.bytes[std::size_t(id)];
  }
  if (all.of_characters) return state_->decoder.text(std::move(tokens), continued, asked);
  return out;
}

std::int64_t Tokenizer::size() const { return std::int64_t(state_->vocabulary.bytes.size()); }
bool Tokenizer::lines_apart() const { return state_->lines_apart; }

std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const {
  for (const auto& added : state_->added)
    if (added.text == token) return added.id;
  const auto found = state_->vocabulary.ids.find(token);
  if (found == state_->vocabulary.ids.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> Tokenizer::special() const {
  std::vector<std::string> out;
  for (const auto& added : state_->added)
    if (added.special) out.push_back(added.text);
  return out;
}

}  // namespace rille::data
