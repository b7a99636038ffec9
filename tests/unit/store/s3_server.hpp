// A store of S3's kind on loopback, for tests: objects, conditional puts, uploads in parts and lists. It checks no
// signature: tests/contract/stores does. `fault` sees each request before it is answered.
#pragma once

#include <map>

#include "tests/unit/net/scripted_server.hpp"

class S3Server {
 public:
  // lost: has its effect, and the connection is cut before the answer. throttled: for longer than calls wait
  enum class Fault { none, denied, lost, throttled };
  struct Asked {
    std::string method, key, query;  // of a list: its prefix as the key
  };

  std::map<std::string, std::string> objects;  // by key. Change it in `fault`, or while nothing is asked
  std::function<Fault(const Asked&)> fault;
  std::size_t page_max = 1000;
  std::vector<std::string> intruders;  // keys and, ending in "/", prefixes that each list has besides
  ScriptedServer server{[this](const ScriptedServer::Request& r, ScriptedServer::Wire& w) { serve(r, w); }};

  S3Server() {
    setenv("AWS_ACCESS_KEY_ID", "id", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret of the key", 1);
  }
  std::string address(const std::string& key) const {
    return "s3://bucket/" + key + "?endpoint=http://" + server.host() + "&region=r";
  }

 private:
  using Request = ScriptedServer::Request;
  using Wire = ScriptedServer::Wire;

  static std::string decoded(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '%') out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)), i += 2;
      else out += text[i];
    return out;
  }
  static std::string field(const std::string& query, const std::string& name) {
    for (std::size_t at = 0; at < query.size();) {
      const std::size_t end = std::min(query.find('&', at), query.size());
      if (query.compare(at, name.size() + 1, name + "=") == 0)
        return decoded(query.substr(at + name.size() + 1, end - at - name.size() - 1));
      at = end + 1;
    }
    return {};
  }
  static std::string etag(const std::string& bytes) {
    return "\"" + std::to_string(std::hash<std::string>()(bytes)) + "\"";
  }

  void serve(const Request& r, Wire& w) {
    const std::size_t mark = std::min(r.target.find('?'), r.target.size());
    Asked asked{r.method, decoded(r.target.substr(0, mark)), r.target.substr(std::min(mark + 1, r.target.size()))};
    asked.key = asked.key.substr(std::min(asked.key.size(), std::string("/bucket/").size()));
    const bool lists = r.method == "GET" && asked.key.empty();
    if (lists) asked.key = field(asked.query, "prefix");
    const Fault what = fault ? fault(asked) : Fault::none;
    if (what == Fault::denied) return w.answer(403, "<Error><Code>AccessDenied</Code></Error>");
    if (what == Fault::throttled) return w.answer(503, "<Error><Code>SlowDown</Code></Error>", "Retry-After: 3600\r\n");
    lost_ = what == Fault::lost;
    if (lists) return answer(w, 200, list(asked));
    if (r.method == "PUT" || r.method == "POST") return put(r, w, asked);
    if (r.method == "DELETE") {
      objects.erase(asked.key);
      return answer(w, 204, "");
    }
    const auto found = objects.find(asked.key);
    if (found == objects.end()) return answer(w, 404, "<Error><Code>NoSuchKey</Code></Error>");
    const std::string headers = "ETag: " + etag(found->second) + "\r\n";
    if (r.method == "HEAD")
      return w.send("HTTP/1.1 200 X\r\nContent-Length: " + std::to_string(found->second.size()) + "\r\n" + headers +
                    "\r\n");
    const std::string range = r.header("range");
    if (range.empty()) return answer(w, 200, found->second, headers);
    const std::size_t from = std::stoul(range.substr(6)), dash = range.find('-');
    const std::size_t last = dash + 1 < range.size() ? std::stoul(range.substr(dash + 1)) : found->second.size() - 1;
    answer(w, 206, found->second.substr(from, last - from + 1),
           headers + "Content-Range: bytes " + std::to_string(from) + "-" + std::to_string(last) + "/" +
               std::to_string(found->second.size()) + "\r\n");
  }

  void answer(Wire& w, int status, const std::string& body, const std::string& headers = "") {
    if (lost_) return w.cut();
    w.answer(status, body, headers);
  }

  void put(const Request& r, Wire& w, const Asked& asked) {
    const std::string upload = field(asked.query, "uploadId"), number = field(asked.query, "partNumber");
    if (asked.query.find("uploads") != std::string::npos) {
      const std::string name = std::to_string(++uploads_);
      return answer(w, 200, "<A><UploadId>" + name + "</UploadId></A>");
    }
    if (!number.empty()) {
      parts_[upload][std::stoi(number)] = r.body;
      return answer(w, 200, "", "ETag: " + etag(r.body) + "\r\n");
    }
    const auto found = objects.find(asked.key);
    const std::string match = r.header("if-match");
    if ((r.header("if-none-match") == "*" && found != objects.end()) ||
        (!match.empty() && (found == objects.end() || etag(found->second) != match)))
      return answer(w, 412, "<Error><Code>PreconditionFailed</Code></Error>");
    std::string body = r.body;
    if (!upload.empty() && parts_[upload].empty()) return answer(w, 400, "<Error><Code>MalformedXML</Code></Error>");
    if (!upload.empty()) {
      body.clear();
      for (const auto& [n, bytes] : parts_[upload]) body += bytes;
      parts_.erase(upload);
    }
    objects[asked.key] = body;
    answer(w, 200, upload.empty() ? "" : "<A><ETag>" + etag(body) + "</ETag></A>", "ETag: " + etag(body) + "\r\n");
  }

  std::string list(const Asked& asked) const {
    const std::string delimiter = field(asked.query, "delimiter"), after = field(asked.query, "continuation-token");
    std::string rows, last, end;
    for (const std::string& key : intruders)
      rows += key.ends_with('/') ? "<CommonPrefixes><Prefix>" + key + "</Prefix></CommonPrefixes>"
                                 : "<Contents><Key>" + key + "</Key><Size>1</Size></Contents>";
    std::size_t keys = 0;
    for (const auto& [key, bytes] : objects) {
      if (key.compare(0, asked.key.size(), asked.key) != 0 || key <= after) continue;
      if (delimiter.empty() && ++keys > page_max) break;
      end = key;
      const std::size_t cut = delimiter.empty() ? std::string::npos : key.find(delimiter, asked.key.size());
      if (cut == std::string::npos) {
        rows += "<Contents><Key>" + key + "</Key><Size>" + std::to_string(bytes.size()) + "</Size></Contents>";
      } else if (key.substr(0, cut + 1) != last) {
        last = key.substr(0, cut + 1);
        rows += "<CommonPrefixes><Prefix>" + last + "</Prefix></CommonPrefixes>";
      }
    }
    const bool more = keys > page_max;
    return "<ListBucketResult><IsTruncated>" + std::string(more ? "true" : "false") + "</IsTruncated>" +
           (more ? "<NextContinuationToken>" + end + "</NextContinuationToken>" : "") + rows + "</ListBucketResult>";
  }

  std::map<std::string, std::map<int, std::string>> parts_;
  int uploads_ = 0;
  bool lost_ = false;
};
