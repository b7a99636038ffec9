#include "runtime/core/store/pages.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace rille::store {

void forget_pages(std::string_view part) {
  if (part.empty()) return;
  const auto before = reinterpret_cast<std::uintptr_t>(part.data()) % std::uintptr_t(::sysconf(_SC_PAGESIZE));
  ::madvise(const_cast<char*>(part.data()) - before, part.size() + before, MADV_DONTNEED);
}

Result<> check_pages(std::string_view part, const std::string& path) {
  if (part.empty()) return success();
  const char* last = part.data() + part.size() - 1;
  const auto page = reinterpret_cast<std::uintptr_t>(last) % std::uintptr_t(::sysconf(_SC_PAGESIZE));
  if (::madvise(const_cast<char*>(last) - page, 1, MADV_POPULATE_READ) == 0 || errno != EFAULT) return success();
  return make_error(ErrorKind::io, fmt::format("'{}' was truncated while it was in use", path),
                    "replace files by renaming a new one into place, instead of writing into them");
}

}  // namespace rille::store
