// Communicator: `world` ranks, each in a process (or thread) of its own, that exchange and reduce tensors together.
//
// Every rank makes the same calls in the same order; at each call the ranks first tell each other what they do. So a
// call that differs, a lost rank and a missing rank are errors at all ranks, within the time limit.
// After the first error the communicator is unusable: every later call returns the same error.
//
// A reduction has the same bits at every rank and each time: contributions are folded in the order of the ranks, half
// types in f32 with one rounding at the end, independent of message sizes and transports.
//
// Errors: invalid (a bad call, or one that does not match another rank's), network (a lost rank), timeout, cancelled.
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
  std::string address;                // "10.0.0.1:29500": where rank 0 listens; unused in a world of 1
  std::string token;                  // shared secret of all ranks; required if others can reach the address
  std::int64_t timeout_ms = 300'000;  // for all ranks to connect, and for each call without progress
  bool shared_memory = true;          // use it between ranks of one machine
  std::string build;                  // "": this program's build id
  std::shared_ptr<Fd> listener;       // of rank 0: a socket that already listens at the address
};

class Mesh;
// Connects all ranks; `payload` is set to rank 0's value. `place`: "the CPU". For code that makes communicators.
Result<std::unique_ptr<Mesh>> meet_ranks(const Options& options, const std::string& place, std::string& payload,
                                         const std::shared_ptr<Stop>& stop);

class Communicator {
 public:
  // For the CPU. Blocks until all ranks are connected.
  static Result<std::shared_ptr<Communicator>> create(const Options& options, std::shared_ptr<Stop> stop);
  // For a CUDA device, by NCCL (cuda_communicator.cpp): data goes from GPU to GPU, and the device's stream waits for
  // the other ranks, not its lane. device: NCCL is missing.
  static Result<std::shared_ptr<Communicator>> create_on(std::shared_ptr<device::CudaDevice> device,
                                                         const Options& options, std::shared_ptr<Stop> stop);
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int world() const = 0;
  virtual std::string transport() const = 0;  // "shared memory", "tcp", "shared memory and tcp", "nothing"
  virtual std::string place() const = 0;      // "cpu", "cuda:0"
  // The host name under which rank 0 saw this rank; empty at rank 0 itself.
  virtual std::string host() const = 0;
  virtual bool takes(const device::Device& device) const = 0;  // whether it accepts tensors of that device
  // Several pieces, which must have one type, are sent as one message.
  virtual Result<> run(const Operation& operation, const std::vector<Piece>& pieces) = 0;
  // Tells the other ranks that this one makes no more calls. Threads as for run().
  virtual void leave() = 0;
  // Ends all waits, and the communicator.
  virtual void stop(Error why) = 0;
  virtual void hurry(std::int64_t ms) = 0;  // from now on every wait has at most `ms` left
};

}  // namespace rille::collective
