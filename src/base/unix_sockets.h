// UnixSockets: asks the system which Unix sockets exist, by the inodes of their descriptors
// (sock_diag(7)). A socket exists as long as any process has it, or a message that carries it.
#pragma once

#include <cstdint>

namespace taeda {

class UnixSockets {
 public:
  UnixSockets();
  ~UnixSockets();
  UnixSockets(const UnixSockets&) = delete;

  // kUnknown where the system does not answer. Of this process's network namespace, where alone a
  // socket can be found.
  enum class State { kUnknown, kExists, kGone };
  State find(uint32_t inode);
  static uint64_t network();  // the namespace; 0: not known

 private:
  State ask(uint32_t inode);

  int netlink_ = -1;
};

}  // namespace taeda
