// Whether a journal of this process has failed: a full disk, a damaged file. An Error of the journal has the operation
// "journal"; scripts and machines can make errors that look alike, so the engine asks here before it believes one.
#pragma once

namespace rille::store {

void note_journal_failure();  // any thread
bool journal_has_failed();    // any thread

}  // namespace rille::store
