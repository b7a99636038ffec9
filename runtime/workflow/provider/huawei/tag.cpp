#include "runtime/workflow/provider/huawei/ecs.hpp"

namespace rille::provider::huawei {

namespace {
constexpr std::string_view tag_start = "rille-";
}

std::string short_tag(const std::string& tag) {
  const std::size_t x = tag.rfind("-x"), g = x == tag.npos ? tag.npos : tag.rfind("-g", x);
  if (!tag.starts_with(tag_start) || g == tag.npos || g < tag_start.size()) return tag;
  return tag.substr(tag_start.size(), g - tag_start.size()) + "." + tag.substr(g + 2, x - g - 2) + "." +
         tag.substr(x + 2);
}

std::string full_tag(const std::string& value) {
  const std::size_t x = value.rfind('.'), g = x == value.npos || x == 0 ? value.npos : value.rfind('.', x - 1);
  if (value.starts_with(tag_start) || g == value.npos) return value;
  return std::string(tag_start) + value.substr(0, g) + "-g" + value.substr(g + 1, x - g - 1) + "-x" +
         value.substr(x + 1);
}

}  // namespace rille::provider::huawei
