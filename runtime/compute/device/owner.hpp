// Who holds a device's memory: a name for what this thread allocates while an OwnedBy lives, shown by
// Device::memory_summary() and so by errors of kind memory. A name is a literal or interned(): it is never freed.
#pragma once

#include <string>

namespace rille::device {

class OwnedBy {
 public:
  explicit OwnedBy(const char* name);
  ~OwnedBy();
  OwnedBy(const OwnedBy&) = delete;
  OwnedBy& operator=(const OwnedBy&) = delete;
  static const char* said();  // null where nobody has
  static const char* now();   // "other" then

 private:
  const char* before_;
};

const char* interned(const std::string& name);  // few and short ones only: they stay

}  // namespace rille::device
