// Why a compiled function was recorded again: how a call differs from the recorded ones, in words.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "runtime/compute/tensor/tensor.hpp"

namespace rille::tensor {

// The properties that identify a call, in parts that can be named. `key` as in Compiled::begin.
struct Signature {
  struct Argument {
    std::string plain;  // as in the key; "": a tensor
    DType dtype = DType::f32;
    Dims shape, strides;
    int shares = -1;         // index of an earlier argument in whose memory this one lies
    std::int64_t apart = 0;  // elements from the start of that one
  };
  std::vector<std::string> settings;  // "autocast=bf16"
  std::vector<std::string> reads;     // "scale=2", "model=table #1": values from outside that the function reads
  std::vector<Argument> arguments;
  std::string part;  // of an accumulation: "first of 4"; "": none
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
  std::uint64_t dropped = 0;  // recordings dropped to make room
  std::deque<One> latest;     // the last `kept` of `count`
  std::string warning;        // one line, set once, at the eighth avoidable recording

  void add(const std::vector<Difference>& why);

 private:
  std::uint64_t avoidable_ = 0;  // excludes parts of an accumulation and first gradients
};

}  // namespace rille::tensor
