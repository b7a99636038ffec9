// The one translation unit that compiles Catch2's main, and what makes a failure name its case.
#define CATCH_CONFIG_MAIN
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

namespace {

char running[256] = "";  // the case that runs now, for the signal handler

void too_long(int) {
  constexpr char start[] = "\nFAILED: ", end[] = " (still running at the limit of time)\n";
  for (const char* text : {start, static_cast<const char*>(running), end})
    if (write(STDOUT_FILENO, text, strlen(text)) < 0) break;
  _exit(1);
}

struct NameFailures : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;

  void testRunStarting(const Catch::TestRunInfo&) override {
    // CTest kills a program at its TIMEOUT, and nothing says which case it was: this comes a little earlier.
    const char* limit_s = getenv("RILLE_TEST_LIMIT");
    if (limit_s == nullptr) return;
    signal(SIGALRM, too_long);
    alarm(static_cast<unsigned>(atoi(limit_s)));
  }
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    snprintf(running, sizeof running, "%s", info.name.c_str());
  }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (stats.totals.assertions.failed == 0) return;
    failed_.push_back(stats.testInfo.name + " (" + stats.testInfo.lineInfo.file + ":" +
                      std::to_string(stats.testInfo.lineInfo.line) + ")");
  }
  void testRunEnded(const Catch::TestRunStats&) override {
    alarm(0);
    for (const std::string& name : failed_) std::cout << "FAILED: " << name << "\n";
    std::cout << std::flush;
  }

 private:
  std::vector<std::string> failed_;
};
CATCH_REGISTER_LISTENER(NameFailures)

}  // namespace
