// Why a compiled function was recorded anew: what of a call differs from the calls it has a recording of, in words.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "runtime/compute/tensor/tensor.hpp"

namespace rille::tensor {

// What a call is known by, in parts that can be named. `key` as Compiled::begin takes it.
struct Signature {
  struct Argument {
    std::string plain;  // as in the key; "": a tensor
    DType dtype = DType::f32;
    Dims shape, strides;
    int shares = -1;         // the argument before it whose memory it lies in
    std::int64_t apart = 0;  // elements behind that one's beginning
  };
  std::vector<std::string> settings;  // "autocast=bf16"
  std::vector<std::string> reads;     // "scale=2", "model=table #1": what the function reads by itself
  std::vector<Argument> arguments;
  std::string part;  // of an accumulation: "first of 4"; "": there is none
};
Signature signature_of(const std::vector<Tensor>& inputs, const std::string& key, std::string part);

enum class Cause : std::uint8_t {
  shape,
  strides,
  type,
  device,
  plain,
  count,
  sharing,
  setting,
  read,
  grad,
  part,
  dropped
};
struct Difference {
  Cause cause;
  std::string text;  // "argument 1: f32[8, 12] became f32[6, 12]"
};
std::vector<Difference> differences(const Signature& before, const Signature& now);

// The recordings of one compiled function beyond its first.
struct Retraces {
  struct One {
    std::uint64_t call = 0;  // counts from 1
    std::string cause;
  };
  static constexpr std::size_t kept = 32;
  static constexpr std::uint64_t warn_at = 8;

  std::uint64_t calls = 0, count = 0;
  std::uint64_t dropped = 0;  // recordings that made room for others
  std::deque<One> latest;     // of `count`, the last `kept`
  std::string warning;        // one line, once, at the eighth that could have been avoided

  void add(const std::vector<Difference>& why);

 private:
  std::uint64_t avoidable_ = 0;  // neither the parts of an accumulation nor a first gradient
};

}  // namespace rille::tensor
