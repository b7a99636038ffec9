#include "runtime/core/base/channel_spec.hpp"

namespace rille {

Value ChannelSpec::to_value() const {
  Value::Array prefix(argv_prefix.begin(), argv_prefix.end());
  Value out;
  out.set("argv_prefix", std::move(prefix)).set("directory", directory);
  if (quoted) out.set("quoted", true);
  return out;
}

std::vector<std::string> ChannelSpec::command(const std::vector<std::string>& words) const {
  std::vector<std::string> out = argv_prefix;
  if (!quoted) {
    out.insert(out.end(), words.begin(), words.end());
    return out;
  }
  std::string line;
  for (const std::string& word : words) (line += line.empty() ? "" : " ") += shell_quote(word);
  out.push_back(std::move(line));
  return out;
}

std::string shell_quote(const std::string& word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') out += "'\\''";
    else out += c;
  }
  return out + "'";
}

Result<ChannelSpec> ChannelSpec::from_value(const Value& value) {
  ChannelSpec out;
  if (!value["argv_prefix"].is_null()) {
    const Value::Array* prefix = value["argv_prefix"].as_array();
    // An empty Lua table arrives as an empty object, so accept that as an empty list.
    if (!prefix && !(value["argv_prefix"].as_object() && value["argv_prefix"].as_object()->empty()))
      return make_error(ErrorKind::invalid,
                        "channel: argv_prefix is " + value["argv_prefix"].to_json() + ", expected a list of strings",
                        "the provider described how to reach the machine: mend that provider program");
    for (std::size_t i = 0; prefix && i < prefix->size(); ++i) {
      const std::string* word = (*prefix)[i].as_string();
      if (!word)
        return make_error(ErrorKind::invalid,
                          "channel: argv_prefix holds " + (*prefix)[i].to_json() + ", expected a string",
                          "the provider described how to reach the machine: mend that provider program");
      out.argv_prefix.push_back(*word);
    }
  }
  out.quoted = value.boolean("quoted");
  out.directory = value.text("directory");
  if (out.directory.empty() || out.directory[0] != '/')
    return make_error(ErrorKind::invalid, "channel: directory is '" + out.directory + "', not an absolute path",
                      "the provider described how to reach the machine: mend that provider program");
  return out;
}

Result<InstanceFile> InstanceFile::from_value(const Value& value) {
  InstanceFile out;
  out.id = value.text("id");
  if (out.id.empty())
    return make_error(ErrorKind::integrity, std::string(name) + " has no id: " + value.to_json(),
                      "this file of a rented machine is damaged: release the machine and rent again");
  out.expires_wall_us = value.integer("expires_wall_us");
  out.orphan_after_ms = value.integer("orphan_after_ms", out.orphan_after_ms);
  out.idle_after_ms = value.integer("idle_after_ms");
  out.idle_below = value.number("idle_below", out.idle_below);
  if (out.expires_wall_us < 0 || out.orphan_after_ms < 0 || out.idle_after_ms < 0 || !(out.idle_below >= 0))
    return make_error(ErrorKind::integrity, std::string(name) + " has times that cannot be: " + value.to_json(),
                      "this file of a rented machine is damaged: release the machine and rent again");
  if (const Value::Array* words = value["end"].as_array())
    for (const Value& word : *words)
      if (const std::string* text = word.as_string()) out.end.push_back(*text);
  out.keeps_files = value.boolean("keeps_files");
  out.terminating = value.boolean("terminating");
  return out;
}

}  // namespace rille
