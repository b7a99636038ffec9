// Answers of web servers, byte for byte, to a download. The first byte chooses whether a part is there to continue and
// whether the digest is known; then come the answers to one request after another, parted by \x1e. Whatever headers,
// ranges and lengths say, the staged file is the one reported, and no other file is left behind.
#include "runtime/core/base/id.hpp"
#include "runtime/core/net/redact.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/workflow/transfer/stage.hpp"
#include "tests/fuzz/sessions.hpp"
#include "tests/fuzz/told_web.hpp"

using namespace rille;

namespace {

constexpr std::int64_t size_bytes_max = 1 << 20;
constexpr const char* content = "0123456789 the content of the file\n";
constexpr std::size_t part_bytes = 10;

struct Scratch {
  const std::string path = sessions::folder_for("rille-web-fuzz");
  ~Scratch() { std::filesystem::remove_all(path); }
};

// What an interrupted call has left.
void leave_part(const std::string& target, const std::string& url) {
  std::ofstream(target + ".part") << std::string(content, part_bytes);
  const auto boot = store::read_file("/proc/sys/kernel/random/boot_id", 100);
  std::ofstream(target + ".part.json")
      << Value().set("url", sha256_hex(net::redact_url(url))).set("version", "\"v1\"").set("boot", *boot).to_json();
}

std::string answer(const std::string& status, const std::string& headers, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\n" + headers + "\r\n" + body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const Scratch scratch;
  const std::string& folder = scratch.path;
  static std::unique_ptr<ToldWeb> web;
  static int used = 0;
  if (used++ % ToldWeb::inputs_max == 0) web = std::make_unique<ToldWeb>();
  web->begin(std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  std::filesystem::remove_all(folder + "/t");
  std::filesystem::create_directories(folder + "/t");
  const std::string target = folder + "/t/file";
  if (data[0] & 1) leave_part(target, web->url("/file"));
  VirtualTime time;
  const std::unique_ptr<Loop> loop = Loop::create_virtual(time).value();
  net::HttpOptions http;
  http.proxy_from_environment = false;
  net::HttpClient client(*loop, http);
  transfer::StageOptions options;
  options.size_bytes_max = size_bytes_max;
  options.resumes_max = 2;
  options.may_connect = [port = web->url("/file")](const std::string& host, const std::string& to) -> Result<> {
    if (port.find("//" + host + ":" + to + "/") != std::string::npos) return success();
    return make_error(ErrorKind::denied, "no other server is asked");
  };
  if (data[0] & 2) options.sha256 = store::fingerprint(content, true).sha256;
  const std::string expected = options.sha256;
  const auto staged = run_blocking(*loop, transfer::stage(client, web->url("/file"), target, std::move(options)));
  std::size_t left = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/t")) {
    const std::string name = entry.path().filename();
    fuzz_check(name == "file" || name == "file.part" || name == "file.part.json", "nothing else is left");
    ++left;
  }
  if (!staged) {
    fuzz_check(!staged.error().message.empty() && staged.error().kind != ErrorKind::internal, "a refusal says why");
    fuzz_check(!std::filesystem::exists(target), "nothing is at the destination after an error");
    return 0;
  }
  const auto print = store::fingerprint_file(target, true);
  fuzz_check(print.ok() && print->sha256 == staged->sha256 && left == 1, "the file is the one that is told");
  fuzz_check(print->size_bytes <= size_bytes_max, "a file has a limit");
  fuzz_check(expected.empty() || expected == print->sha256, "an expected digest is kept");
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string all = content, rest = all.substr(part_bytes);
  const std::string length = "Content-Length: " + std::to_string(all.size()) + "\r\n", etag = "ETag: \"v1\"\r\n";
  const std::string range = "Content-Range: bytes " + std::to_string(part_bytes) + "-" +
                            std::to_string(all.size() - 1) + "/" + std::to_string(all.size()) + "\r\n";
  const std::string whole = answer("200 OK", length + etag, all);
  const std::string tail = answer("206 Partial Content", range + etag, rest);
  return {'0' + whole,
          '1' + tail,
          '3' + tail,
          '2' + whole.substr(0, whole.size() - rest.size()) + '\x1e' + tail,
          '0' + answer("200 OK", "Transfer-Encoding: chunked\r\n", "a\r\n0123456789\r\n0\r\n\r\n"),
          '1' + answer("416 Range", "Content-Range: bytes */5\r\n", "") + '\x1e' + whole,
          '0' + answer("302 Found", "Location: /other\r\n", "") + '\x1e' + whole,
          '0' + answer("503 No", "Retry-After: 1\r\n", "") + '\x1e' + whole,
          '1' + answer("206 Partial Content", range + "ETag: \"v2\"\r\n", rest) + '\x1e' + whole};
}

std::vector<std::string> fuzz_words() {
  return {"\x1e",
          "\r\n",
          "\r\n\r\n",
          "bytes ",
          "*/*",
          "0-0/1",
          "-",
          "/",
          "W/",
          "ETag: ",
          "\"v1\"",
          "Last-Modified: ",
          "206",
          "200",
          "304",
          "412",
          "chunked",
          "Content-Length: ",
          "Content-Range: ",
          "Location: ",
          "ffffffffffffffff\r\n",
          "HTTP/1.1 100 C\r\n\r\n"};
}
