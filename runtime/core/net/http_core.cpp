#include "runtime/core/net/http_core.hpp"

#include <random>

#include "runtime/core/base/id.hpp"

namespace rille::net {

HttpClient::Core::Core(Loop& loop, HttpOptions options)
    : multi(loop, options.connections_max, options.connections_per_host_max), options_(std::move(options)),
      random_state_(options_.jitter_seed) {
  if (!random_state_) random_state_ = std::stoull(random_hex(7), nullptr, 16) + 1;
}

std::uint64_t HttpClient::Core::random(std::uint64_t below) {
  std::minstd_rand engine(static_cast<std::minstd_rand::result_type>(random_state_ ^ (random_state_ >> 32)));
  engine.discard(2);
  random_state_ = random_state_ * 6364136223846793005u + engine();
  return below ? (random_state_ >> 16) % below : 0;
}

}  // namespace rille::net
