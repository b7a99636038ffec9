/* A host that creates and destroys runtimes for as long as it lives: in memory and on disk in turns, each runs a script
   with a step. Memory, descriptors and threads are at the end what they are after a tenth of them. Usage: runtimes N */
#include <dirent.h>
#include <rille.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), exit(1)))

static int spare_mb = 2; /* RILLE_TEST_SPARE_MB: under sanitizers */

typedef struct use {
  long kb, threads, descriptors;
} use;

static use used(void) {
  use out = {0, 0, 0};
  char line[200];
  FILE* status = fopen("/proc/self/status", "r");
  CHECK(status);
  while (fgets(line, sizeof line, status)) {
    (void)sscanf(line, "VmRSS: %ld", &out.kb);
    (void)sscanf(line, "Threads: %ld", &out.threads);
  }
  fclose(status);
  DIR* open_files = opendir("/proc/self/fd");
  CHECK(open_files);
  while (readdir(open_files)) ++out.descriptors;
  closedir(open_files);
  return out;
}

static void ok(rille_error* error) {
  if (error) fprintf(stderr, "%s\n", rille_error_to_json(error));
  CHECK(!error);
}

static void one(const char* home) {
  static const char source[] = "return require('rille').step('add', function() return 40 + 2 end)";
  rille_options options;
  rille_options_init(&options, sizeof options);
  options.home = home;
  rille_runtime* rt = NULL;
  ok(rille_create(&options, &rt));
  rille_run* run = NULL;
  ok(rille_run_from_source(rt, "step.lua", source, strlen(source), NULL, &run));
  ok(rille_run_start(run));
  ok(rille_run_wait(run, -1));
  CHECK(rille_run_state(run) == RILLE_RUN_DONE && strcmp(rille_run_result(run, NULL), "42") == 0);
  rille_run_free(run);
  ok(rille_destroy(rt));
}

int main(int argc, char** argv) {
  const char* home = getenv("RILLE_HOME");
  const int count = argc > 1 ? atoi(argv[1]) : 1000;
  CHECK(home && count >= 10);
  if (getenv("RILLE_TEST_SPARE_MB")) spare_mb = atoi(getenv("RILLE_TEST_SPARE_MB"));
  use before = {0, 0, 0};
  for (int i = 0; i < count; ++i) {
    one(i % 2 ? home : ":memory:");
    if (i + 1 == count / 10) before = used();
  }
  const use after = used();
  printf("after %d runtimes %ld KB, %ld threads, %ld descriptors; after %d %ld KB, %ld threads, %ld descriptors\n",
         count / 10, before.kb, before.threads, before.descriptors, count, after.kb, after.threads, after.descriptors);
  CHECK(after.threads <= before.threads && after.descriptors <= before.descriptors);
  CHECK(after.kb <= before.kb + spare_mb * 1024L);
  printf("runtimes leave nothing behind\n");
  return 0;
}
