#include "runtime/core/store/schema.hpp"

#include <fmt/format.h>

#include "runtime/core/base/id.hpp"

namespace rille::store {

namespace {

constexpr const char* format_1 = R"sql(
CREATE TABLE runs (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, script TEXT NOT NULL, mode TEXT NOT NULL,
  parent TEXT NOT NULL DEFAULT '',   -- the run whose script started it
  state TEXT NOT NULL,               -- running suspended done failed cancelled diverged cleanup
  epoch INTEGER NOT NULL,            -- fencing: raised by each runner that takes the run
  args TEXT NOT NULL, result TEXT, error TEXT,
  budget_micros INTEGER,             -- null: no limit
  forked_from TEXT NOT NULL DEFAULT '', -- RUN KEY: whose record it began with, and the first entry that it left out
  seed TEXT NOT NULL DEFAULT '',     -- the run whose random numbers it draws; '': its own
  month_micros INTEGER,              -- what this run leaves the month's leases of the whole home; null: no limit
  tag TEXT NOT NULL DEFAULT '',      -- whose budget it shares
  deadline_us INTEGER,               -- null: none
  host_modules TEXT NOT NULL DEFAULT '', -- names of the host program's modules: who resumes it must have them
  cancel_after INTEGER,              -- null: not cancelled. The last completion before it; -1: it came before the start
  cancel_reason TEXT,
  created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL, ended_us INTEGER,
  host TEXT NOT NULL, pid INTEGER NOT NULL
) STRICT;

CREATE INDEX runs_by_parent ON runs(parent) WHERE parent<>'';

CREATE TABLE blobs (sha256 TEXT PRIMARY KEY, content TEXT NOT NULL) STRICT;

-- The pinned bundle: what each module of a run said when it was first read.
CREATE TABLE sources (
  run TEXT NOT NULL REFERENCES runs(id), module TEXT NOT NULL, sha256 TEXT NOT NULL REFERENCES blobs(sha256),
  PRIMARY KEY (run, module)
) STRICT, WITHOUT ROWID;

-- What the fibers of a run did, appended in the order of completion: id is the run's number * 2^32 + seq, and (fiber,
-- pos) the place in the fiber's own order.
CREATE TABLE entries (
  id INTEGER PRIMARY KEY,
  fiber TEXT NOT NULL, pos INTEGER NOT NULL,
  kind TEXT NOT NULL, name TEXT NOT NULL, occurrence INTEGER NOT NULL, args_sha256 TEXT NOT NULL,
  attempt INTEGER NOT NULL, source TEXT NOT NULL,
  started_us INTEGER NOT NULL, ended_us INTEGER NOT NULL,
  value TEXT, error TEXT, blob TEXT  -- one of them. blob: the name of a large value (store/blobs.hpp)
) STRICT;
CREATE INDEX entries_blobs ON entries(blob) WHERE blob IS NOT NULL;

-- What has begun and not completed. run is the run's number.
CREATE TABLE begun (
  run INTEGER NOT NULL, fiber TEXT NOT NULL, pos INTEGER NOT NULL,
  kind TEXT NOT NULL, name TEXT NOT NULL, occurrence INTEGER NOT NULL, args_sha256 TEXT NOT NULL,
  attempt INTEGER NOT NULL, next_us INTEGER NOT NULL, source TEXT NOT NULL, started_us INTEGER NOT NULL,
  progress TEXT,                     -- of a step, as JSON: what the next attempt must know
  PRIMARY KEY (run, fiber, pos)
) STRICT, WITHOUT ROWID;

-- Every billable object has a row; the row alone is enough to terminate it.
CREATE TABLE leases (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, run TEXT NOT NULL REFERENCES runs(id), name TEXT NOT NULL,
  scope TEXT NOT NULL, generation INTEGER NOT NULL, provider TEXT NOT NULL,
  state TEXT NOT NULL,               -- intent creating live releasing released
  token TEXT NOT NULL, tag TEXT NOT NULL,
  machine TEXT,                      -- the provider's answer, as JSON
  machine_id TEXT, price_micros_per_hour INTEGER NOT NULL,
  created_us INTEGER NOT NULL, send_by_us INTEGER, live_us INTEGER, expires_us INTEGER NOT NULL,
  released_us INTEGER, detached INTEGER NOT NULL DEFAULT 0, error TEXT,
  cap_micros_per_hour INTEGER NOT NULL, disk_micros_per_hour INTEGER NOT NULL,
  reserved_micros INTEGER NOT NULL,  -- what this generation may cost until its end
  replacing TEXT,                    -- why this generation is given up for another; null: it is not
  open INTEGER,                      -- 1 until it is released. By the state itself each move would change the index
  CHECK ((open IS 1) = (state<>'released'))
) STRICT;
CREATE INDEX leases_by_run ON leases(run);
CREATE INDEX leases_open ON leases(open) WHERE open IS NOT NULL;  -- whether anything is rented at all

-- What a lease asks for, in its newest generation. A table of its own, for a lease that moves is written anew, and this
-- is most of it. lease is the lease's number.
CREATE TABLE requests (
  lease INTEGER PRIMARY KEY, request TEXT NOT NULL,
  options TEXT NOT NULL              -- of rent: enough to rent again
) STRICT;

-- The machines that leases have had, one per generation; a second one that came to light has a row, too. lease, here
-- and in `segments`: its number. Those that are written together are often of one time: by ids, which are hashes, each
-- commit would touch most of the table's pages.
CREATE TABLE machines (
  lease INTEGER NOT NULL, generation INTEGER NOT NULL, machine_id TEXT NOT NULL,
  provider TEXT NOT NULL, region TEXT NOT NULL, billing TEXT NOT NULL,
  from_us INTEGER NOT NULL, to_us INTEGER,   -- null: it lives
  ready_us INTEGER,                          -- when it could first be used
  busy_us INTEGER NOT NULL DEFAULT 0, busy_since_us INTEGER,
  PRIMARY KEY (lease, generation, machine_id)
) STRICT, WITHOUT ROWID;

-- What they cost, in pieces of one price; `reconciled` is the provider's bill, with its amount.
CREATE TABLE segments (
  lease INTEGER NOT NULL, generation INTEGER NOT NULL, machine_id TEXT NOT NULL,
  part TEXT NOT NULL,                        -- machine disk address
  from_us INTEGER NOT NULL, to_us INTEGER,   -- null: it goes on
  micros_per_hour INTEGER NOT NULL,          -- -1: not known
  amount_micros INTEGER, source TEXT NOT NULL,  -- estimate reconciled
  PRIMARY KEY (lease, generation, machine_id, part, from_us)
) STRICT, WITHOUT ROWID;

-- Limits of the whole home: of the month ("month"), of a tag ("tag:NAME").
CREATE TABLE budgets (
  scope TEXT PRIMARY KEY, limit_micros INTEGER NOT NULL,
  alert_percent INTEGER NOT NULL, alert_url TEXT NOT NULL,
  alerted TEXT NOT NULL DEFAULT ''           -- what it was last told for: the month, or "once"
) STRICT, WITHOUT ROWID;

-- What is to be told to a web hook or by e-mail, once per key; told_us: it was, or is given up.
CREATE TABLE alerts (
  key TEXT PRIMARY KEY, run TEXT NOT NULL, url TEXT NOT NULL, body TEXT NOT NULL, created_us INTEGER NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0, next_us INTEGER NOT NULL, told_us INTEGER, error TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX alerts_due ON alerts(next_us) WHERE told_us IS NULL;

-- What was put on a lease's machine, in order: done again on its next one before anything else runs there.
CREATE TABLE setups (
  lease TEXT NOT NULL, n INTEGER NOT NULL, spec TEXT NOT NULL,
  generation INTEGER NOT NULL,               -- the newest that has it
  entry INTEGER NOT NULL,                    -- that recorded it; 0: of a session
  PRIMARY KEY (lease, n)
) STRICT, WITHOUT ROWID;

-- When a lease's machine will be taken away, as its provider or something on it has said.
CREATE TABLE notices (
  lease TEXT NOT NULL PRIMARY KEY, generation INTEGER NOT NULL, deadline_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Whose a lease's machine is: what the keys belonged to when its newest generation was rented. No row: nobody said.
CREATE TABLE owners (
  lease TEXT NOT NULL PRIMARY KEY, generation INTEGER NOT NULL, owner TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The newest checkpoint of a call that has been copied to the run's home and verified there.
CREATE TABLE checkpoints (
  lease TEXT NOT NULL, call TEXT NOT NULL, generation INTEGER NOT NULL, step INTEGER NOT NULL,
  there TEXT NOT NULL, here TEXT NOT NULL, event TEXT NOT NULL,
  PRIMARY KEY (lease, call)
) STRICT, WITHOUT ROWID;

-- Of a call whose checkpoints go to a store: the machine that was last given the newest one there, and the generation
-- in the store from which the call's own count on.
CREATE TABLE lineages (
  lease TEXT NOT NULL, call TEXT NOT NULL, generation INTEGER NOT NULL, base INTEGER NOT NULL,
  PRIMARY KEY (lease, call)
) STRICT, WITHOUT ROWID;

-- The audit trail: one line per paid action and per thing that people ask about; hash: see audit.hpp.
CREATE TABLE events (
  id INTEGER PRIMARY KEY, run TEXT NOT NULL, at_us INTEGER NOT NULL, event TEXT NOT NULL, data TEXT NOT NULL,
  hash TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_run ON events(run, id);

-- Who may go on in a pool now; and, of pools with a rate, when the next permit would be due.
CREATE TABLE permits (
  pool TEXT NOT NULL, run TEXT NOT NULL REFERENCES runs(id), key TEXT NOT NULL, epoch INTEGER NOT NULL,
  taken_us INTEGER NOT NULL,
  PRIMARY KEY (pool, run, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX permits_by_run ON permits(run);
CREATE TABLE rates (pool TEXT PRIMARY KEY, next_us INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- Scripts that are to run again and again; after_us: up to there, what was due has been dealt with.
CREATE TABLE schedules (
  name TEXT PRIMARY KEY, timing TEXT NOT NULL, script TEXT NOT NULL, args TEXT NOT NULL, tag TEXT NOT NULL,
  missed TEXT NOT NULL, overlap TEXT NOT NULL, created_us INTEGER NOT NULL, after_us INTEGER NOT NULL,
  last_run TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

-- Runs that `rille watch` has started, or is to start: how often since they came any further, and when again.
CREATE TABLE watched (
  run TEXT PRIMARY KEY REFERENCES runs(id), tries INTEGER NOT NULL, next_us INTEGER NOT NULL,
  seen INTEGER NOT NULL,             -- entries of its record, at the last try
  why TEXT NOT NULL DEFAULT ''       -- it is left alone, and people have been told
) STRICT, WITHOUT ROWID;

CREATE TABLE inbox (
  run TEXT NOT NULL REFERENCES runs(id), name TEXT NOT NULL, message_id TEXT NOT NULL, payload TEXT NOT NULL,
  at_us INTEGER NOT NULL, taken_by TEXT,
  PRIMARY KEY (run, name, message_id)
) STRICT, WITHOUT ROWID;
)sql";

// Format 1 may still change before its release, so each file stores this fingerprint of the SQL text that created it.
std::int64_t fingerprint() { return std::stoll(sha256_hex(format_1).substr(0, 7), nullptr, 16); }

// What has changed since files with these fingerprints, oldest first: a file gets its own change and all later ones.
// A change of format_1 adds a row with the fingerprint of the text before it; tests/golden keeps a file of each.
struct Change {
  std::int64_t since;
  const char* sql;
};
constexpr Change changes[] = {
    {0x2153988, "ALTER TABLE runs ADD COLUMN host_modules TEXT NOT NULL DEFAULT ''"},  // until 2026-11-27
    {0x05627ce,
     "CREATE TABLE lineages (lease TEXT NOT NULL, call TEXT NOT NULL, generation INTEGER NOT NULL, "
     "base INTEGER NOT NULL, PRIMARY KEY (lease, call)) STRICT, WITHOUT ROWID"},  // until 2026-11-28
};

std::string marks() {
  return fmt::format("PRAGMA user_version={}; PRAGMA application_id={}", journal_format, fingerprint());
}

Result<> bring_up_to_date(Db& db, const std::string& path) {
  std::int64_t made_with = 0;
  RILLE_CHECK(db.query("PRAGMA application_id", {}, [&](const Row& row) { made_with = row.integer(0); }));
  if (made_with == fingerprint()) return success();
  bool known = false;
  for (const Change& change : changes) {
    known = known || change.since == made_with;
    if (known) RILLE_CHECK(db.script(change.sql));
  }
  if (known) return db.script(marks().c_str());
  return make_error(ErrorKind::config, fmt::format("'{}' was written by another development version of Rille", path),
                    "use that version, or another RILLE_HOME; `rille gc` there finds rented machines by their tags");
}

}  // namespace

Result<> migrate(Db& db, const std::string& path) {
  RILLE_CHECK(db.run("BEGIN IMMEDIATE"));
  int format = 0;
  Result<> r = db.query("PRAGMA user_version", {}, [&](const Row& row) { format = static_cast<int>(row.integer(0)); });
  if (r && format > journal_format)
    r = make_error(
        ErrorKind::config,
        fmt::format("'{}' has journal format {}; this Rille can read format {}", path, format, journal_format),
        "use the newer Rille that wrote it, or another RILLE_HOME");
  if (r && format == 0) {
    r = db.script(format_1);
    if (r) r = db.script(marks().c_str());
  } else if (r) {
    r = bring_up_to_date(db, path);
  }
  if (!r) {
    (void)db.run("ROLLBACK");
    return r;
  }
  return db.run("COMMIT");
}

}  // namespace rille::store
