// Names the owner of memory that this thread allocates while an OwnedBy lives, for Device::memory_summary() and errors
// of kind memory. A name is a literal or interned(): it is never freed.
#pragma once

#include <string>

namespace rille::device {

class OwnedBy {
 public:
  explicit OwnedBy(const char* name);
  ~OwnedBy();
  OwnedBy(const OwnedBy&) = delete;
  OwnedBy& operator=(const OwnedBy&) = delete;
  static const char* said();  // null if none is set
  static const char* now();   // "other" if none is set

 private:
  const char* before_;
};

const char* interned(const std::string& name);  // for few, short names: they are never freed

}  // namespace rille::device
