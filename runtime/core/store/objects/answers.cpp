#include "runtime/core/store/objects/answers.hpp"

#include <fmt/format.h>

#include <pugixml.hpp>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/text.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/net/content.hpp"
#include "runtime/core/net/sign/parts.hpp"
#include "runtime/core/store/objects/url.hpp"

namespace rille::objects {

namespace {

// White space is kept, since a key may consist of it.
constexpr unsigned xml_options = pugi::parse_default | pugi::parse_ws_pcdata_single;

constexpr std::size_t rows_max = 10'000;  // of one page; stores give 1000, Azure 5000

bool load(pugi::xml_document& document, const std::string& xml) {
  return static_cast<bool>(document.load_buffer(xml.data(), xml.size(), xml_options));
}

// The text of a name, which a list with EncodingType url has encoded; in it a plus is a space.
std::string name_of(std::string text, bool encoded) {
  if (!encoded) return text;
  for (char& c : text)
    if (c == '+') c = ' ';
  return net::percent_decode(text);
}

Result<> add_object(ListPage& page, ObjectInfo info) {
  if (info.size_bytes < 0) return bad_answer("the size of an object is not a number");
  if (!check_key(info.key)) return success();  // such an object cannot be asked for either
  if (page.objects.size() >= rows_max) return bad_answer("a page has more rows than any store sends");
  page.objects.push_back(std::move(info));
  return success();
}

Result<> add_prefix(ListPage& page, std::string prefix) {
  if (page.prefixes.size() >= rows_max) return bad_answer("a page has more rows than any store sends");
  if (check_key(prefix)) page.prefixes.push_back(std::move(prefix));
  return success();
}

}  // namespace

Error bad_answer(const std::string& what) {
  return make_error(ErrorKind::integrity, "the store's answer cannot be right: " + what,
                    "check the endpoint; a proxy between this machine and the store may change the answers");
}

std::int64_t time_in(const std::string& text) {
  if (const Result<std::int64_t> utc = parse_utc(text)) return *utc;
  const std::int64_t ms = net::parse_retry_after_ms(text, 0);
  return text.find(',') == std::string::npos || ms < 0 ? 0 : ms * 1000;
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

std::string text_in_xml(const std::string& xml, const char* name) {
  pugi::xml_document document;
  return load(document, xml) ? document.document_element().child_value(name) : "";
}

Result<ListPage> read_s3_list(const std::string& xml, bool marker) {
  pugi::xml_document document;
  const bool read = load(document, xml);
  const pugi::xml_node root = document.document_element();
  if (!read || std::string_view(root.name()) != "ListBucketResult") return bad_answer("it is not a list of objects");
  const bool encoded = std::string_view(root.child_value("EncodingType")) == "url";
  ListPage page;
  std::string last;
  for (const pugi::xml_node& row : root.children()) {
    const std::string_view kind = row.name();
    if (kind == "Contents") {
      ObjectInfo info;
      info.key = name_of(row.child_value("Key"), encoded);
      info.size_bytes = net::size_in(row.child_value("Size"));
      info.version = row.child_value("ETag");
      info.modified_wall_us = time_in(row.child_value("LastModified"));
      last = std::max(last, info.key);
      RILLE_CHECK(add_object(page, std::move(info)));
    } else if (kind == "CommonPrefixes") {
      for (const pugi::xml_node& prefix : row.children("Prefix")) {
        std::string name = name_of(prefix.child_value(), encoded);
        last = std::max(last, name);
        RILLE_CHECK(add_prefix(page, std::move(name)));
      }
    }
  }
  if (std::string_view(root.child_value("IsTruncated")) != "true") return page;
  page.next_token = marker ? name_of(root.child_value("NextMarker"), encoded)
                           : std::string(root.child_value("NextContinuationToken"));
  if (page.next_token.empty() && marker) page.next_token = last;
  if (page.next_token.empty()) return bad_answer("a list goes on, but does not say where");
  return page;
}

Result<ListPage> read_azure_list(const std::string& xml) {
  pugi::xml_document document;
  const bool read = load(document, xml);
  const pugi::xml_node root = document.document_element();
  if (!read || std::string_view(root.name()) != "EnumerationResults") return bad_answer("it is not a list of blobs");
  const auto name_in = [](const pugi::xml_node& row) {
    const pugi::xml_node name = row.child("Name");
    const std::string text = name.child_value();
    return name.attribute("Encoded").as_bool() ? net::percent_decode(text) : text;
  };
  ListPage page;
  for (const pugi::xml_node& row : root.child("Blobs").children()) {
    const std::string_view kind = row.name();
    if (kind == "BlobPrefix") RILLE_CHECK(add_prefix(page, name_in(row)));
    if (kind != "Blob") continue;
    const pugi::xml_node more = row.child("Properties");
    ObjectInfo info;
    info.key = name_in(row);
    info.size_bytes = net::size_in(more.child_value("Content-Length"));
    info.version = more.child_value("Etag");
    // Lists have the bare tag, headers have it in quotes.
    if (!info.version.empty() && !info.version.starts_with('"')) info.version = '"' + info.version + '"';
    info.modified_wall_us = time_in(more.child_value("Last-Modified"));
    RILLE_CHECK(add_object(page, std::move(info)));
  }
  page.next_token = root.child_value("NextMarker");
  return page;
}

StoreWords read_xml_error(const net::HttpResponse& response) {
  StoreWords out;
  for (const char* name : {"x-amz-request-id", "x-oss-request-id", "x-cos-request-id", "x-obs-request-id",
                           "x-ms-request-id", "x-guploader-uploadid"})
    if (out.request_id.empty()) out.request_id = response.header(name);
  for (const char* name : {"x-amz-bucket-region", "x-cos-bucket-region", "x-obs-bucket-location"})
    if (out.region.empty()) out.region = response.header(name);
  out.code = response.header("x-ms-error-code");
  pugi::xml_document document;
  if (!load(document, response.body)) return out;
  const pugi::xml_node root = document.document_element();
  if (std::string_view(root.name()) != "Error") return out;
  out.code = root.child_value("Code");
  out.message = root.child_value("Message");
  if (out.region.empty()) out.region = root.child_value("Region");
  if (out.request_id.empty()) out.request_id = root.child_value("RequestId");
  // OSS names the right server instead: oss-cn-hangzhou.aliyuncs.com
  const std::string server = root.child_value("Endpoint");
  if (out.region.empty() && server.starts_with("oss-")) out.region = server.substr(4, server.find('.') - 4);
  if (out.region.ends_with("-internal")) out.region.resize(out.region.size() - 9);
  return out;
}

}  // namespace rille::objects
