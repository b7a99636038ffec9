#include "runtime/provider/cloud/key_age.hpp"

namespace rille::provider::cloud {

Identity with_key_age(Identity who, const std::string& key_id, const Result<Value::Array>& rows, const KeyList& how) {
  if (!rows) {
    who.age_unknown = rows.error().message;
    return who;
  }
  for (const Value& row : *rows)
    if (row.text("AccessKeyId") == key_id)
      if (const Result<std::int64_t> made = how.time(row.text(how.made))) who.key_made_wall_us = *made;
  if (who.key_made_wall_us == 0) who.age_unknown = std::string(how.service) + " does not list this key";
  return who;
}

}  // namespace rille::provider::cloud
