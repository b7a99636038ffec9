// SettingsReader: a provider's part of the settings file, field by field. What is wrong is remembered, and told at the
// end: the first wrong field, or one that nobody asked for, with the nearest name. Any thread.
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
  // "us-central1-a", or a list of such; "" and an empty list are none.
  std::vector<std::string> one_or_more(const char* field, const std::string& otherwise);
  std::int64_t bytes(const char* field, std::int64_t otherwise);  // "100GB"
  bool flag(const char* field, bool otherwise);
  Value object(const char* field);
  // An object of names and texts, which a machine bears beside our own tag.
  Value tags(const char* field);
  // A text for all types, or an object of types and texts: text_for reads it.
  Value text_by_type(const char* field);
  Value any(const char* field) { return take(field); }               // the caller says what is wrong with it
  Result<> done(std::initializer_list<const char*> elsewhere = {});  // fields that others read; config

 private:
  const Value& take(const char* field);
  void refuse(const char* field, const char* wanted);

  std::string provider_;
  const Value& settings_;
  std::vector<std::string> known_;
  std::optional<Error> wrong_;
};

// Those that SettingsReader::tags has read, to a list of objects with these two fields.
void add_tags(Value::Array& list, const Value& tags, const char* key, const char* value);

// What text_by_type says of that type; "": nothing.
std::string text_for(const Value& by_type, const std::string& type);

// Each region's name and settings: `regions` is a list of names, or an object of names with what is different there;
// the rest of the settings holds for all. Without it: the `usual` region. config: neither a list nor an object.
Result<std::vector<std::pair<std::string, Value>>> region_settings(const std::string& provider, const Value& settings,
                                                                   const std::string& usual);

}  // namespace rille::provider::cloud
