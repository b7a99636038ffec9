// The small files that Rille keeps about a machine and reads again after a crash, or after another program has had its
// hands on them: machine.json, notice.json, agent.lock, agent.tree, fence.json, the files of a call. The first byte
// chooses. A damaged file is refused as such or counts as none; what is accepted lies in its limits.
#include <fstream>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/loop/process_tree.hpp"
#include "runtime/core/store/instance_dir.hpp"
#include "runtime/workflow/agent/admission.hpp"
#include "runtime/workflow/agent/call_files.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;

namespace {

const TempDir& folder() {
  static const TempDir one;
  return one;
}

void put(const std::string& name, const std::string& text) {
  std::ofstream(folder().file(name), std::ios::binary) << text;
}

void check_machine(const std::string& text) {
  put(InstanceFile::name, text);
  const Result<std::optional<Value>> machine = store::read_machine(folder().path);
  if (!machine) return fuzz_check(machine.error().kind == ErrorKind::integrity, "damage is an integrity error");
  const Result<InstanceFile> file = InstanceFile::from_value(**machine);
  if (!file) return fuzz_check(!file.error().message.empty(), "a refusal says why");
  fuzz_check(file->expires_wall_us >= 0 && file->orphan_after_ms >= 0 && file->idle_after_ms >= 0, "times are sound");
  fuzz_check(file->idle_below >= 0, "a load is a number");
}

void check_owner(const std::string& text) {
  put(store::agent_lock_name, text);
  const std::optional<store::AgentOwner> owner = store::read_agent_owner(folder().path);
  fuzz_check(!owner || (owner->pid > 0 && owner->pid <= INT32_MAX), "a process has a number that a signal can go to");
}

void check_notice(const std::string& text) {
  put(store::notice_name, text);
  const std::optional<std::int64_t> notice = store::read_notice(folder().path);
  fuzz_check(!notice || *notice > 0, "a notice has an instant");
}

void check_tree(const std::string& text) {
  const std::string boot = encode_processes({});  // the first line, without which all is of an earlier boot
  for (const std::string& whole : {text, boot + text})
    for (const ProcessId& p : decode_processes(whole)) fuzz_check(p.pid > 1, "nothing signals init or a group");
}

void check_fence(const std::string& text) {
  put("fence.json", text);
  agent::Admission admission(folder().path);
  if (const Result<> loaded = admission.load(); !loaded)
    return fuzz_check(loaded.error().kind == ErrorKind::integrity, "damage is an integrity error");
  Value hello;
  hello.set("token", std::string(64, 'a')).set("epoch", agent::Admission::epoch_max).set("generation", 1);
  const Result<std::int64_t> admitted = admission.admit(hello);
  fuzz_check(admitted.ok() || admitted.error().kind == ErrorKind::auth, "the newest runner with the token is obeyed");
  if (!admitted) return;
  fuzz_check(!admission.check(agent::Admission::epoch_max - 1), "an older one is not");
  hello.set("token", std::string(64, 'b'));
  fuzz_check(!admission.admit(hello), "nor one with another token");
}

void check_call(const std::string& text) {
  std::filesystem::create_directories(folder().file("calls/x"));
  for (const char* name : {"calls/x/spec.json", "calls/x/events.json", "calls/x/result.json", "calls/x/log"})
    put(name, text);
  agent::CallFiles files(folder().file("calls/x"));
  const Result<agent::CallRecord> record = files.load();
  if (!record) fuzz_check(record.error().kind == ErrorKind::integrity, "damage is an integrity error");
  else fuzz_check(record->attempt >= 0, "attempts are counted up from zero");
  (void)files.events();
  if (const Result<Value> result = files.result(); !result)
    fuzz_check(!result.error().message.empty(), "a refusal says why");
  (void)files.last_lines();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0: check_machine(text); break;
    case 1: check_owner(text); break;
    case 2: check_notice(text); break;
    case 3: check_tree(text); break;
    case 4: check_fence(text); break;
    default: check_call(text);
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> out;
  for (const char* text :
       {R"({"id":"i-1","expires_wall_us":1764003600000000,"orphan_after_ms":1800000,"idle_after_ms":0,"idle_below":0.05,
          "end":["sudo","poweroff"],"keeps_files":true,
          "terminating":false,"notice":{"url":"http://169.254.169.254/x"}})",
        R"({"pid":4242,"start_time":123456})", R"({"deadline_wall_us":1764003600000000})", "4242 123456\n4243 123457\n",
        R"({"epoch":3,"generation":2,
          "token_sha256":"ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"})",
        R"({"key":"main/x#1","generation":1,"epoch":3,"attempt":2,"spec":{"kind":"exec","argv":["true"]},
          "progress":{"step":1},"checkpoint":{"step":1},"grown_attempt":1,"value":7})"})
    out.push_back(std::string(1, static_cast<char>(out.size())) + text);
  return out;
}

std::vector<std::string> fuzz_words() {
  return {"\"epoch\":-1",
          "\"epoch\":1e15",
          "\"generation\":1e15",
          "\"pid\":4294967297",
          "\"attempt\":-1",
          "\"attempt\":1e12",
          "\"error\":{}",
          "\"error\":7",
          "\"end\":[7]",
          "\"idle_below\":-1",
          "0 1\n",
          "1 1\n",
          "-1 1\n",
          "99999999999 1\n",
          "\n"};
}
