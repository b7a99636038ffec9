// Communicator: `world` ranks, each in a process (or thread) of its own, that exchange and reduce numbers together.
//
// Every rank makes the same calls in the same order; each call begins with each rank telling all others what it does.
// So a call that differs, a rank that is gone and one that does not come are errors at all ranks, within the time
// limit.
// After the first error the communicator is of no use: every later call gives the same error again.
//
// A reduction has the same bits at every rank and each time: contributions are folded in the order of the ranks, half
// types in f32 with one rounding at the end, however the message was cut and whatever it went through.
//
// Errors: invalid (this call cannot be, or does not fit to another rank's), network (a rank is gone), timeout,
// cancelled.
// Threads: create() and run() block; one call of run() at a time, on a lane. stop() and hurry() from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/compute/collective/operation.hpp"
#include "runtime/compute/collective/socket.hpp"
#include "runtime/compute/device/device.hpp"

namespace rille::device {
class CudaDevice;
}

namespace rille::collective {

struct Options {
  int rank = 0, world = 1;
  std::string address;                // "10.0.0.1:29500": where rank 0 listens; none is needed for a world of 1
  std::string token;                  // a secret that all ranks know; needed where others could reach the address
  std::int64_t timeout_ms = 300'000;  // for all ranks to come, and of each call without progress
  bool shared_memory = true;          // between ranks of one machine
  std::string build;                  // "": this one's
  std::shared_ptr<Fd> listener;       // rank 0's: it listens there already, at a port that was free
};

class Mesh;
// The connections of all ranks; `gift` becomes rank 0's. `place`: "the CPU". For who makes communicators.
Result<std::unique_ptr<Mesh>> meet_ranks(const Options& options, const std::string& place, std::string& gift,
                                         const std::shared_ptr<Stop>& stop);

class Communicator {
 public:
  // The CPU's. Blocks until all ranks have come.
  static Result<std::shared_ptr<Communicator>> create(const Options& options, std::shared_ptr<Stop> stop);
  // A CUDA device's, by NCCL (cuda_communicator.cpp): numbers go from card to card, and the device's stream waits for
  // the others, not its lane. device: there is no NCCL.
  static Result<std::shared_ptr<Communicator>> create_on(std::shared_ptr<device::CudaDevice> device,
                                                         const Options& options, std::shared_ptr<Stop> stop);
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int world() const = 0;
  virtual std::string transport() const = 0;  // "shared memory", "tcp", "shared memory and tcp", "nothing"
  virtual std::string place() const = 0;      // "cpu", "cuda:0"
  // Under which name of its machine this rank has met rank 0; empty at rank 0 itself.
  virtual std::string host() const = 0;
  virtual bool takes(const device::Device& device) const = 0;  // tensors there
  // Several pieces go as one message; they are of one type.
  virtual Result<> run(const Operation& operation, const std::vector<Piece>& pieces) = 0;
  // Tells the other ranks that this one makes no more calls. As run().
  virtual void leave() = 0;
  // Ends what waits, and the communicator.
  virtual void stop(Error why) = 0;
  virtual void hurry(std::int64_t ms) = 0;  // from now on whatever waits has so long
};

}  // namespace rille::collective
