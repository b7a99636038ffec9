#include "runtime/workflow/agent/admission.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/core/base/id.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::agent {

namespace {

constexpr const char* taken_over = "another runner has taken over this run; this one must stop";
constexpr std::size_t token_bytes_min = 32, token_bytes_max = 1024;

Result<> in_range(const char* name, std::int64_t number) {
  if (number >= 0 && number <= Admission::epoch_max) return {};
  return make_error(ErrorKind::invalid,
                    fmt::format("{} {} of a runner (0 to {}, epoch_max)", name, number, Admission::epoch_max));
}

// An agent of an older build has kept none.
bool is_token(const Value& sha256) {
  const std::string* text = sha256.as_string();
  return sha256.is_null() || (text && is_sha256_hex(*text));
}

Error refused_token(std::string message, std::string hint) {
  Error e = make_error(ErrorKind::auth, std::move(message), std::move(hint));
  e.code = "agent_token";
  return e;
}

}  // namespace

Result<> Admission::load() {
  if (access(path_.c_str(), F_OK) != 0) return {};
  RILLE_TRY(std::string text, store::read_file(path_, 4096));
  const Result<Value> fence = Value::from_json(text);
  const auto number = [&](const char* field) {
    const double* n = (*fence)[field].as_number();
    return n && *n >= 0 && *n <= static_cast<double>(epoch_max);
  };
  const bool sound = fence && number("epoch") && number("generation") && is_token((*fence)["token_sha256"]);
  if (!sound)
    return make_error(ErrorKind::integrity, fmt::format("'{}' is damaged: it does not say who may command", path_),
                      "release the machine and rent again");
  epoch_ = fence->integer("epoch");
  generation_ = fence->integer("generation");
  token_sha256_ = fence->text("token_sha256");
  return {};
}

Result<std::int64_t> Admission::admit(const Value& hello) {
  const std::string token = hello.text("token");
  if (token.size() < token_bytes_min || token.size() > token_bytes_max)
    return refused_token("the agent obeys a runner with a token only", "use the same version of rille on both sides");
  const std::string given = sha256_hex(token);
  if (!token_sha256_.empty() &&
      (given.size() != token_sha256_.size() || CRYPTO_memcmp(given.data(), token_sha256_.data(), given.size()) != 0))
    return refused_token("this instance belongs to another runner: its agent knows another token",
                         "resume the run on the machine and with the configuration folder that rented the instance "
                         "(docs/manual/agents.md)");
  const std::int64_t epoch = hello.integer("epoch"), generation = hello.integer("generation");
  RILLE_CHECK(in_range("epoch", epoch));
  RILLE_CHECK(in_range("generation", generation));
  RILLE_CHECK(check(epoch));
  if (given != token_sha256_ || epoch != epoch_ || generation > generation_) saved_ = false;
  token_sha256_ = given;
  epoch_ = epoch;
  generation_ = std::max(generation, generation_);
  (void)save();
  return epoch;
}

Result<> Admission::check(std::int64_t epoch) const {
  if (epoch >= epoch_) return {};
  Error e =
      make_error(ErrorKind::state, fmt::format("this runner has epoch {}, but the instance has seen {}", epoch, epoch_),
                 taken_over);
  e.code = "fenced";
  return e;
}

Result<> Admission::start(const std::string& call, std::int64_t epoch, std::int64_t generation) {
  RILLE_CHECK(in_range("epoch", epoch));
  RILLE_CHECK(in_range("generation", generation));
  auto refuse = [&](const char* what, std::int64_t given, std::int64_t seen) {
    return make_error(ErrorKind::state,
                      fmt::format("'{}' comes from {} {}, but the instance has seen {}", call, what, given, seen),
                      taken_over);
  };
  if (epoch < epoch_) return refuse("epoch", epoch, epoch_);
  if (generation < generation_) return refuse("generation", generation, generation_);
  if (epoch != epoch_ || generation != generation_) saved_ = false;
  epoch_ = epoch;
  generation_ = generation;
  return save();
}

// If it cannot be written now, the next start tries again.
Result<> Admission::save() {
  if (saved_) return {};
  Value fence;
  fence.set("epoch", epoch_).set("generation", generation_);
  if (!token_sha256_.empty()) fence.set("token_sha256", token_sha256_);
  RILLE_CHECK(store::write_file_atomic(path_, fence.to_json(), 0600));
  saved_ = true;
  return {};
}

}  // namespace rille::agent
