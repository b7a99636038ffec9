// Reads the XML that S3 and its relatives answer, and Azure. Names in it are hostile: nothing recurses. Private to
// objects/. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/store/objects/rest.hpp"

namespace rille::objects {

// Error `integrity`: the answer is not a list, or has impossible values. `marker`: the list is of the older kind, which
// may name no next token: then its last name is one.
Result<ListPage> read_s3_list(const std::string& xml, bool marker);
Result<ListPage> read_azure_list(const std::string& xml);

// The text of the element with that name below the root; "": there is none.
std::string text_in_xml(const std::string& xml, const char* name);

// An <Error> with <Code>, <Message> and, where a store tells it, the region. Empty: the answer is no error.
StoreWords read_xml_error(const net::HttpResponse& response);

// "2026-11-27T01:02:03.000Z" or "Fri, 27 Nov 2026 01:02:03 GMT"; 0: neither form.
std::int64_t time_in(const std::string& text);

std::string xml_escaped(std::string_view text);
Error bad_answer(const std::string& what);

}  // namespace rille::objects
