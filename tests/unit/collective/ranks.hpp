// Ranks as threads of the test: each makes its communicator and runs a function.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "runtime/compute/collective/communicator.hpp"

namespace rille::collective {

using Ranks = std::shared_ptr<Communicator>;

template <class T>
T get(Result<T> r) {
  if (!r) FAIL(r.error().summary());
  return std::move(r).value();
}
inline void get(Result<void> r) {
  if (!r) FAIL(r.error().summary());
}

// A port that was free when asked for.
inline std::string free_address() {
  const Fd fd = get(listen_at({"127.0.0.1", 0}));
  return to_string(local_address(fd.get()));
}

inline Options options_of(int rank, int world, const std::string& address, bool shared_memory = true) {
  Options o;
  o.rank = rank;
  o.world = world;
  o.address = address;
  o.timeout_ms = 20'000;
  o.shared_memory = shared_memory;
  return o;
}

// The results of each rank's create(), in the order of the ranks.
inline std::vector<Result<Ranks>> meet_all(const std::vector<Options>& options) {
  std::vector<std::optional<Result<Ranks>>> made(options.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < options.size(); ++i)
    threads.emplace_back([&, i] { made[i] = Communicator::create(options[i], std::make_shared<Stop>()); });
  for (auto& t : threads) t.join();
  std::vector<Result<Ranks>> out;
  for (auto& m : made) out.push_back(std::move(*m));
  return out;
}

inline std::vector<Ranks> ranks_of(int world, bool shared_memory = true, std::int64_t timeout_ms = 20'000) {
  const auto address = free_address();
  std::vector<Options> options;
  for (int r = 0; r < world; ++r) {
    options.push_back(options_of(r, world, address, shared_memory));
    options.back().timeout_ms = timeout_ms;
  }
  std::vector<Ranks> out;
  for (auto& made : meet_all(options)) out.push_back(get(std::move(made)));
  return out;
}

// Runs body(rank) at all ranks at once.
inline std::vector<Result<>> each(const std::vector<Ranks>& ranks, const std::function<Result<>(Communicator&)>& body) {
  std::vector<Result<>> out(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r) threads.emplace_back([&, r] { out[r] = body(*ranks[r]); });
  for (auto& t : threads) t.join();
  return out;
}

inline void all_good(const std::vector<Result<>>& results) {
  for (const auto& r : results)
    if (!r) FAIL(r.error().summary());
}

template <class T>
constexpr DType type_of() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  else if constexpr (std::is_same_v<T, double>) return DType::f64;
  else if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
  else if constexpr (std::is_same_v<T, std::int64_t>) return DType::i64;
  else return DType::bf16;  // std::uint16_t
}

template <class T>
Operation operation(Kind kind, std::size_t count, Reduce how = Reduce::sum, int peer = 0) {
  Operation op;
  op.kind = kind;
  op.dtype = type_of<T>();
  op.reduce = how;
  op.peer = peer;
  op.count = std::int64_t(count);
  op.shape.push(op.count);
  return op;
}

template <class T>
Result<> all_reduce(Communicator& c, std::vector<T>& v, Reduce how = Reduce::sum) {
  return c.run(operation<T>(Kind::all_reduce, v.size(), how), {{v.data(), v.data(), std::int64_t(v.size())}});
}

}  // namespace rille::collective
