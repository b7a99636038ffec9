// Why a compiled function was recorded again: names the differences between a call and the earlier recordings.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "runtime/compute/tensor/tensor.hpp"

namespace rille::tensor {

// The properties that identify a call, split so that a difference can be named. `key`: see Compiled::begin.
struct Signature {
  struct Argument {
    std::string plain;  // text of a plain argument, as in the key; "": the argument is a tensor
    DType dtype = DType::f32;
    Dims shape, strides;
    int shares = -1;         // index of an earlier argument that shares this one's storage; -1: none
    std::int64_t apart = 0;  // elements from the start of that earlier argument to this one's start
  };
  std::vector<std::string> settings;  // graph settings, such as "autocast=bf16"
  std::vector<std::string> reads;     // "scale=2", "model=table #1": values from outside that the function reads
  std::vector<Argument> arguments;
  std::string part;  // part of a batch, "first of 4"; "": the batch has one part
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
  std::string text;  // such as "argument 1: f32[8, 12] became f32[6, 12]"
};
std::vector<Difference> differences(const Signature& before, const Signature& now);

// The recordings of one compiled function after the first one.
struct Retraces {
  struct One {
    std::uint64_t call = 0;  // number of the call that was recorded, from 1
    std::string cause;
  };
  static constexpr std::size_t kept = 32;
  static constexpr std::uint64_t warn_at = 8;

  std::uint64_t calls = 0, count = 0;
  std::uint64_t dropped = 0;  // number of recordings dropped to make room for new ones
  std::deque<One> latest;     // the latest recordings, at most `kept`
  std::string warning;        // one line, set once, at the eighth avoidable recording; else ""

  void add(const std::vector<Difference>& why);

 private:
  std::uint64_t avoidable_ = 0;  // recordings beyond the first, without those for a batch's parts or a first gradient
};

}  // namespace rille::tensor
