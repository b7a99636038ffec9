// Volumes as leases: the options of rille.volume, the volumes of a home by name, and the volumes of a rent. A volume is
// a lease whose request says so (provider/volumes.hpp); docs/design/volumes.md has the rules. The functions that take a
// Db read it on that connection's thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/provider/volumes.hpp"

namespace rille::lease {

// The options of rille.volume.
struct VolumeTerms {
  std::string provider;  // "": the only one that has volumes
  provider::VolumeWish wish;
  bool keep = true;
};
// Error invalid: an unknown option, or a bad value.
Result<VolumeTerms> read_volume_terms(const Value& options);

inline bool is_volume(const Lease& lease) { return provider::is_volume(lease.request); }
// Whether the volume outlives scopes and runs.
bool is_kept(const Lease& lease);

// The volume of that name that is not deleted; nullopt: none.
Result<std::optional<Lease>> open_volume(store::Db& db, const std::string& name);
// All volumes that are not deleted.
Result<std::vector<Lease>> open_volumes(store::Db& db);
// Error state, code volume_differs: the volume is not as the options ask; the message has both.
Result<> check_same(const Lease& volume, const Value& options);

// A lease that has the volume now, or will have it again: its run goes on, and it is getting another machine.
struct User {
  std::string lease, name, run;
};
Result<std::vector<User>> users_of(store::Db& db, const std::string& volume, std::int64_t now_us);
// Error state, code volume_in_use: a lease has the volume.
Result<> check_unused(store::Db& db, const Lease& volume, std::int64_t now_us);
// Whether the lease with this row number is a volume.
Result<bool> is_volume_row(store::Db& db, std::int64_t number);

// Checks the option `volumes` of a rent: a table of a folder's name to a volume's lease id.
Result<> check_mounts(const Value& option);
// The volumes of a rent's options. Error state, code volume_gone: one is not live.
Result<std::vector<provider::Mount>> mounts_of(store::Db& db, const Value& options);
// The options of a rent with the provider and the region of its volumes. Error invalid: they are in different places,
// or the options ask for another place.
Result<Value> placed(store::Db& db, const Value& options);
// Checks, in the transaction that plans the lease, that its volumes are live, and free unless they are shared.
Result<> check_free(store::Db& db, const Lease& lease, std::int64_t now_us);
// Checks, in the transaction that plans the volume, that no other volume of the home has the name.
Result<> check_name_free(store::Db& db, const Lease& volume);

}  // namespace rille::lease
