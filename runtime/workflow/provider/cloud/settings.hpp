// SettingsReader: reads a provider's part of the settings file field by field. done() returns the first error: a wrong
// value, or an unknown field with the nearest name. Any thread.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/value.hpp"

namespace rille::provider::cloud {

class SettingsReader {
 public:
  SettingsReader(std::string provider, const Value& settings) : provider_(std::move(provider)), settings_(settings) {}

  std::string text(const char* field, std::string otherwise = "");
  std::vector<std::string> texts(const char* field, std::vector<std::string> otherwise);
  // A string such as "us-central1-a", or a list of strings; "" and an empty list give an empty result.
  std::vector<std::string> one_or_more(const char* field, const std::string& otherwise);
  std::int64_t bytes(const char* field, std::int64_t otherwise);  // a size such as "100GB"
  bool flag(const char* field, bool otherwise);
  Value object(const char* field);
  // An object with string values: the user's tags for machines, added to Rille's own tags.
  Value tags(const char* field);
  // A string for all types, or an object with a string per type; read it with text_for.
  Value text_by_type(const char* field);
  Value any(const char* field) { return take(field); }  // the caller checks the value
  Result<> done(
      std::initializer_list<const char*> elsewhere = {});  // `elsewhere`: further valid fields, read by other code

 private:
  const Value& take(const char* field);
  void refuse(const char* field, const char* wanted);

  std::string provider_;
  const Value& settings_;
  std::vector<std::string> known_;
  std::optional<Error> wrong_;
};

// Appends the tags from SettingsReader::tags to a list of objects with these two field names.
void add_tags(Value::Array& list, const Value& tags, const char* key, const char* value);

// The value of text_by_type for that type; "": none.
std::string text_for(const Value& by_type, const std::string& type);

// Returns each region's name and settings. The setting `regions` is a list of names, or an object with overriding
// settings per region; all other settings apply to every region. Without `regions`: the `usual` region. config: neither
// a list nor an object.
Result<std::vector<std::pair<std::string, Value>>> region_settings(const std::string& provider, const Value& settings,
                                                                   const std::string& usual);

}  // namespace rille::provider::cloud
