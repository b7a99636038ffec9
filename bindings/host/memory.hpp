// Memory that the host program shares with its scripts. When the last owner of a Memory ends, on any thread, it is
// given back.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace rille::host {

struct Memory {
  Memory(void* at, std::size_t bytes, std::function<void()> give_back)
      : data(static_cast<std::byte*>(at)), size(bytes), release(std::move(give_back)) {}
  ~Memory() {
    if (release) release();
  }
  Memory(const Memory&) = delete;

  std::byte* data;
  std::size_t size;
  std::function<void()> release;
};

}  // namespace rille::host
