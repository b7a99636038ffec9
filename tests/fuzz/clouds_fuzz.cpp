// What clouds answer, through the drivers that read it. The first byte chooses the cloud, the second what is asked;
// then come kept answers: "== STATUS KEY", a line end, a body. A server on loopback gives to each request the answer
// with the longest key that the request has. Waits are in virtual time.
#include <mutex>

#include "tests/fuzz/clouds.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/kept.hpp"
#include "tests/unit/net/scripted_server.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;

namespace {

constexpr int requests_max = 120, inputs_per_server = 100;  // a server keeps its threads until it ends

struct Answer {
  int status = 200;
  std::string key, body;
};

std::vector<Answer> answers_in(const std::string& text) {
  std::vector<Answer> out;
  for (std::size_t at = text.find("== "); at != std::string::npos;) {
    const std::size_t line = std::min(text.find('\n', at), text.size());
    const std::size_t next = text.find("\n== ", line);
    const std::string head = text.substr(at + 3, line - at - 3);
    Answer answer;
    answer.status = std::clamp(std::atoi(head.c_str()), 200, 599);
    answer.key = head.substr(std::min(head.find(' '), head.size() - 1) + 1);
    answer.body = text.substr(std::min(line + 1, text.size()), next == std::string::npos ? next : next - line - 1);
    out.push_back(std::move(answer));
    at = next == std::string::npos ? next : next + 1;
  }
  return out;
}

class Cloud {
 public:
  std::string url() const { return "http://" + server_.host(); }
  void begin(std::vector<Answer> answers) {
    std::lock_guard lock(mutex_);
    answers_ = std::move(answers);
    asked_ = 0;
  }

 private:
  void serve(const ScriptedServer::Request& request, ScriptedServer::Wire& wire) {
    std::lock_guard lock(mutex_);
    if (++asked_ > requests_max || answers_.empty()) return wire.cut();
    std::string path = request.target;  // a proxy is asked for the whole address
    if (path.starts_with("http://")) path.erase(0, std::min(path.find('/', 7), path.size()));
    std::string said = request.method + " " + path + "\n";
    for (const char* header : {"x-amz-target", "x-acs-action", "x-tc-action"}) said += request.header(header) + "\n";
    said += request.body;
    const Answer* best = &answers_[static_cast<std::size_t>(asked_) % answers_.size()];
    std::size_t length = 0;
    for (const Answer& answer : answers_)
      if (answer.key.size() > length && said.find(answer.key) != std::string::npos)
        best = &answer, length = answer.key.size();
    wire.answer(best->status, best->body,
                best->body.starts_with('<') ? "Content-Type: text/xml\r\n" : "Content-Type: application/json\r\n");
  }

  std::mutex mutex_;
  std::vector<Answer> answers_;
  int asked_ = 0;
  ScriptedServer server_{[this](const ScriptedServer::Request& r, ScriptedServer::Wire& w) { serve(r, w); }};
};

// Whatever address an answer names is asked of the same server.
void stay_here(const std::string& url) {
  for (const char* variable : {"http_proxy", "https_proxy", "all_proxy"}) ::setenv(variable, url.c_str(), 1);
  for (const char* variable : {"no_proxy", "NO_PROXY", "HTTPS_PROXY", "ALL_PROXY", "KUBECONFIG"}) ::unsetenv(variable);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  static const TempDir folder;
  static std::unique_ptr<Cloud> cloud;
  static int used = 0;
  if (used++ % inputs_per_server == 0) {
    cloud = std::make_unique<Cloud>();
    stay_here(cloud->url());
  }
  cloud->begin(answers_in(std::string(reinterpret_cast<const char*>(data) + 2, size - 2)));
  VirtualTime time;
  const std::unique_ptr<Loop> loop = Loop::create_virtual(time).value();
  const std::string& name = clouds::names()[(data[0] - 'a') % clouds::names().size()];
  const auto provider = clouds::make(*loop, name, cloud->url(), folder.path);
  clouds::use(*loop, *provider, data[1] - static_cast<unsigned>('a'));
  return 0;
}

// Each kept file for each of the operations.
std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> out;
  for (std::string text : fuzz_corpus())
    for (unsigned operation = 0; operation < clouds::operations; ++operation) {
      text[1] = static_cast<char>('a' + operation);
      out.push_back(text);
    }
  fuzz_check(!out.empty(), "there are kept answers");
  return out;
}

std::vector<std::string> fuzz_words() {
  return {"null",
          "[]",
          "{}",
          "\"\"",
          "[{}]",
          "true",
          ":-1",
          ":1e300",
          ":0.5",
          "\"-1\"",
          "\"1e300\"",
          "== 400 ",
          "== 503 ",
          "== 404 ",
          "\n",
          "</item>",
          "<item/>",
          "RUNNING",
          "running",
          "Succeeded",
          "nextLink",
          "nextToken",
          "NextToken",
          "pageToken",
          "1970-01-01T00:00:00Z",
          "9999-12-31T23:59:59Z",
          "\xff",
          "\\u0000",
          std::string(200, '[')};
}
