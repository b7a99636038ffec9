#include "runtime/workflow/provider/cloud/settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/error.hpp"
#include "runtime/core/base/text.hpp"
#include "runtime/core/base/units.hpp"

namespace rille::provider::cloud {

const Value& SettingsReader::take(const char* field) {
  known_.emplace_back(field);
  return settings_[field];
}

void SettingsReader::refuse(const char* field, const char* wanted) {
  if (wrong_) return;
  const std::string_view what = wanted;
  const char* const example = what == "a string"              ? "\"..\""
                              : what.starts_with("an object") ? "{..}"
                                                              : "[\"..\", \"..\"]";
  wrong_ = make_error(
      ErrorKind::config, fmt::format("{}: {} = {}: expected {}", provider_, field, settings_[field].to_json(), wanted),
      what.starts_with("a size") ? "with its unit, in quotes" : fmt::format("as in \"{}\": {}", field, example));
}

std::string SettingsReader::text(const char* field, std::string otherwise) {
  const Value& v = take(field);
  if (v.is_null()) return otherwise;
  if (v.as_string()) return *v.as_string();
  refuse(field, "a string");
  return otherwise;
}

std::vector<std::string> SettingsReader::texts(const char* field, std::vector<std::string> otherwise) {
  const Value& v = take(field);
  if (v.is_null()) return otherwise;
  std::vector<std::string> out;
  const Value::Array* list = v.as_array();
  for (std::size_t i = 0; list && i < list->size(); ++i)
    if ((*list)[i].as_string()) out.push_back(*(*list)[i].as_string());
  if (!list || out.size() != list->size()) refuse(field, "a list of strings");
  return out.empty() ? otherwise : out;
}

std::vector<std::string> SettingsReader::one_or_more(const char* field, const std::string& otherwise) {
  const Value& v = take(field);
  std::vector<std::string> out;
  const Value::Array* list = v.as_array();
  bool good = v.is_null() || v.as_string() || list;
  for (std::size_t i = 0; list && i < list->size(); ++i)
    if (const std::string* one = (*list)[i].as_string()) out.push_back(*one);
    else good = false;
  if (!good) refuse(field, "a string or a list of strings");
  if (v.as_string()) out.push_back(*v.as_string());
  std::erase(out, "");
  if (out.empty() && !otherwise.empty()) out.push_back(otherwise);
  return out;
}

std::int64_t SettingsReader::bytes(const char* field, std::int64_t otherwise) {
  const Value& v = take(field);
  if (v.is_null()) return otherwise;
  const Result<std::int64_t> size =
      v.as_string() ? parse_size_bytes(*v.as_string()) : Result<std::int64_t>(make_error(ErrorKind::config, ""));
  if (!size) refuse(field, "a size as in \"100GB\"");
  return size ? *size : otherwise;
}

bool SettingsReader::flag(const char* field, bool otherwise) {
  const Value& v = take(field);
  if (v.is_null()) return otherwise;
  if (v.as_bool()) return *v.as_bool();
  refuse(field, "true or false");
  return otherwise;
}

Value SettingsReader::object(const char* field) {
  const Value& v = take(field);
  if (!v.is_null() && !v.as_object()) refuse(field, "an object");
  return v.as_object() ? v : Value(Value::Object{});
}

Value SettingsReader::tags(const char* field) {
  const Value& v = take(field);
  bool fits = v.is_null() || v.as_object();
  for (const auto& [name, text] : v.as_object() ? *v.as_object() : Value::Object())
    fits = fits && text.as_string() && !name.empty() && !lower_case(name).starts_with("rille") && name != "Name";
  if (!fits) refuse(field, "an object of names and strings, where no name is Name or begins with rille");
  return fits && v.as_object() ? v : Value(Value::Object{});
}

void add_tags(Value::Array& list, const Value& tags, const char* key, const char* value) {
  for (const auto& [name, text] : *tags.as_object()) list.push_back(Value().set(key, name).set(value, text));
}

Value SettingsReader::text_by_type(const char* field) {
  const Value& v = take(field);
  bool fits = v.is_null() || v.as_string() || v.as_object();
  if (const Value::Object* all = v.as_object())
    for (const auto& [type, text] : *all) fits = fits && text.as_string();
  if (!fits) refuse(field, "a string, or an object of types and strings");
  return fits ? v : Value();
}

Result<> SettingsReader::done(std::initializer_list<const char*> elsewhere) {
  if (wrong_) return *wrong_;
  if (!settings_.as_object()) return {};
  for (const auto& [key, value] : *settings_.as_object()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    if (key == "ssh_from")
      return make_error(ErrorKind::config,
                        fmt::format("{}: ssh_from does not apply, since no security group is created", provider_),
                        "your own group, firewall or network decides which addresses may connect: leave ssh_from out");
    std::vector<std::string> names = known_;
    names.insert(names.end(), elsewhere.begin(), elsewhere.end());
    const std::string near = did_you_mean(key, names);
    std::string all;
    for (const std::string& name : names) (all += all.empty() ? "" : " ") += name;
    return make_error(ErrorKind::config, fmt::format("{}: unknown field '{}'", provider_, key),
                      near.empty() ? "its fields: " + all : fmt::format("did you mean '{}'?", near));
  }
  return {};
}

std::string text_for(const Value& by_type, const std::string& type) {
  return by_type.as_string() ? *by_type.as_string() : by_type.text(type);
}

Result<std::vector<std::pair<std::string, Value>>> region_settings(const std::string& provider, const Value& settings,
                                                                   const std::string& usual) {
  Value common = settings.as_object() ? settings : Value(Value::Object{});
  const Value regions = common["regions"];
  common.as_object()->erase("regions");
  common.as_object()->erase("traits");
  std::vector<std::pair<std::string, Value>> out;
  const bool empty =
      (regions.as_array() && regions.as_array()->empty()) || (regions.as_object() && regions.as_object()->empty());
  if (regions.is_null() || empty) {
    out.emplace_back(usual, common);
  } else if (const Value::Array* names = regions.as_array()) {
    for (const Value& name : *names)
      if (name.as_string()) out.emplace_back(*name.as_string(), common);
  } else if (regions.as_object()) {
    for (const auto& [name, more] : *regions.as_object()) {
      Value merged = common;
      for (const auto& [key, value] : more.as_object() ? *more.as_object() : Value::Object()) merged.set(key, value);
      out.emplace_back(name, std::move(merged));
    }
  }
  if (out.empty())
    return make_error(ErrorKind::config, fmt::format("{}: regions = {}", provider, regions.to_json()),
                      "a list of names, or {\"NAME\": {overrides}}");
  return out;
}

}  // namespace rille::provider::cloud
