#include "core/shared/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <new>
#include <random>

#include "base/process.h"
#include "base/unix_sockets.h"
#include "core/shared/available_memory.h"
#include "core/shared/memory_file.h"
#include "taeda/error.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace taeda::shared {

// A ticket is a serial number, from 1 on, above the bits of its index.
constexpr uint32_t kTicketBits = 12, kTickets = 1u << kTicketBits;
constexpr uint32_t kMostSerial = (1u << (32 - kTicketBits)) - 1;
constexpr uint32_t kTicketTries = 64;
constexpr uint32_t kTicketBeingIssued = 1;  // which is no ticket, since those have serial numbers

struct SegmentHeader {
  uint64_t magic;
  SegmentId id;
  uint64_t size, memory_offset, most_blocks;
  uint64_t creator, creator_namespace;  // its identity
  int32_t creator_descriptor;
  std::atomic<uint32_t> blocks_used;
  std::atomic<uint64_t> freed;
  std::atomic<int64_t> warm_bytes, most_warm_bytes;
  std::atomic<uint64_t> sweeper;                                // a process's identity
  std::array<std::atomic<uint64_t>, kMostProcesses> processes;  // identities; 0: a free slot
  // Which namespace their numbers are of, 0 while that is not known: nothing can be asked about a
  // process of another one.
  std::array<std::atomic<uint64_t>, kMostProcesses> namespaces;
  std::array<std::atomic<uint32_t>, Segment::kHints> hints;
  std::atomic<uint32_t> tickets_issued;
  // By the low bits; 0: a free one, kTicketBeingIssued while the rest is not written yet.
  std::array<std::atomic<uint32_t>, kTickets> tickets;
  std::array<std::atomic<uint32_t>, kTickets> ticket_blocks, ticket_locations;
  std::array<std::atomic<int32_t>, kTickets> ticket_senders;  // their slots
  uint64_t network;                                           // the creator's namespace
};

namespace {

bool is_socket(uint32_t location) {
  return location != Segment::kUnknownLocation && location != Segment::kWithSender &&
         location != Segment::kReceived;
}

constexpr uint64_t kMagic = 0x31736761'64656174;  // "taedags1"
constexpr size_t kHeaderBytes = size_t{128} << 10;
constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
static_assert(sizeof(SegmentHeader) <= kHeaderBytes);

// A process as one word that no other process has before the system starts again: its number, which
// has at most 22 bits, and the time of its start, all ones where that is not known.
constexpr int kPidBits = 22;
constexpr uint64_t kPidMask = (uint64_t{1} << kPidBits) - 1;
uint64_t identity(pid_t pid, int64_t start) {
  return static_cast<uint64_t>(start) << kPidBits | (static_cast<uint64_t>(pid) & kPidMask);
}
uint64_t own_identity() {
  static uint64_t own = 0;
  const pid_t pid = getpid();
  if ((own & kPidMask) != static_cast<uint64_t>(pid)) own = identity(pid, process_start(pid));
  return own;
}
bool runs(uint64_t who) {
  const auto start = static_cast<int64_t>(who) >> kPidBits;
  return is_running(static_cast<pid_t>(who & kPidMask), start);
}
// A child that has not said yet who it is: no process has the number 0.
constexpr uint64_t kReserved = uint64_t{1} << kPidBits;

uint64_t own_namespace() {
  struct stat status;
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 1;
}

std::string name_of(const SegmentId& id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name = "taeda-";
  for (const uint64_t word : id)
    for (int shift = 60; shift >= 0; shift -= 4) name += kDigits[word >> shift & 15];
  return name;
}

SegmentId random_id() {
  SegmentId id;
  if (getrandom(id.data(), sizeof id, GRND_NONBLOCK) == sizeof id) return id;
  std::random_device device;
  for (uint64_t& word : id) word = uint64_t{device()} << 32 | device();
  return id;
}

// Whether the process maps the segment; a program that it has executed since does not.
bool maps(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
  std::string line;
  bool any = false;
  while (std::getline(file, line)) {
    any = true;
    if (line.find(name) != std::string::npos) return true;
  }
  return !any;  // nothing is known of it
}

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

[[noreturn]] void fail_system(const char* what, size_t bytes) {
  fail(ErrorKind::kRuntime, "share_memory: cannot {} {} bytes of shared memory: {}", what,
       static_cast<int64_t>(bytes), std::strerror(errno));
}

}  // namespace

void Segment::map_file(size_t size) {
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (data == MAP_FAILED) return;
  base_ = static_cast<char*>(data);
  size_ = size;
  header_ = reinterpret_cast<SegmentHeader*>(base_);
  madvise(base_, size_, MADV_DONTDUMP);
}

std::unique_ptr<Segment> Segment::create(size_t bytes) {
  std::unique_ptr<Segment> segment(new Segment);
  segment->id_ = random_id();
  // A header each 512 bytes, so that they take an eighth of the address space.
  const size_t blocks = bytes / 512;
  const size_t memory = round_up(kHeaderBytes + blocks * sizeof(BlockHeader), kHeaderBytes);
  const size_t size = memory + round_up(bytes, kHeaderBytes);
  segment->descriptor_ = create_memory_file(name_of(segment->id_).c_str());
  if (segment->descriptor_ < 0) fail_system("get", bytes);
  if (ftruncate(segment->descriptor_, static_cast<off_t>(size)) != 0) return nullptr;
  if (fcntl(segment->descriptor_, F_ADD_SEALS, kSizeSeals) != 0) fail_system("seal", bytes);
  segment->map_file(size);
  if (!segment->base_) return nullptr;
  segment->memory_offset_ = memory;
  segment->most_blocks_ = static_cast<uint32_t>(std::min<size_t>(blocks, UINT32_MAX));
  segment->populate(0, kHeaderBytes);
  auto* const header = new (segment->base_) SegmentHeader{};
  header->id = segment->id_;
  header->size = size;
  header->memory_offset = memory;
  header->most_blocks = segment->most_blocks_;
  header->creator = own_identity();
  header->creator_namespace = own_namespace();
  header->network = UnixSockets::network();
  header->creator_descriptor = segment->descriptor_;
  header->magic = kMagic;
  segment->join();
  return segment;
}

bool Segment::read_id(int descriptor, SegmentId& id) {
  uint64_t start[1 + std::tuple_size_v<SegmentId>];
  if (pread(descriptor, start, sizeof start, 0) != sizeof start || start[0] != kMagic) return false;
  std::copy(start + 1, std::end(start), id.begin());
  return true;
}

std::unique_ptr<Segment> Segment::map(int descriptor) {
  std::unique_ptr<Segment> segment(new Segment);
  segment->descriptor_ = descriptor;
  struct stat status;
  TD_CHECK(read_id(descriptor, segment->id_) && fstat(descriptor, &status) == 0,
           "share_memory: expected a file of shared tensors, got another one");
  const int seals = fcntl(descriptor, F_GET_SEALS);
  TD_CHECK(seals >= 0 && (seals & kSizeSeals) == kSizeSeals,
           "share_memory: expected a memory file whose size is sealed, got one that can shrink");
  const auto size = static_cast<size_t>(status.st_size);
  segment->map_file(size);
  if (!segment->base_) fail_system("map", size);
  const SegmentHeader& header = *segment->header_;
  const size_t room = (header.memory_offset - kHeaderBytes) / sizeof(BlockHeader);
  TD_CHECK(size >= kHeaderBytes && header.size == size && header.memory_offset >= kHeaderBytes &&
               header.memory_offset <= size && header.most_blocks <= room,
           "share_memory: the file of shared tensors is damaged");
  segment->memory_offset_ = header.memory_offset;
  segment->most_blocks_ = static_cast<uint32_t>(header.most_blocks);
  return segment;
}

Segment::~Segment() {
  if (slot_ >= 0) leave(slot_);
  if (base_) munmap(base_, size_);
  close_descriptor();
}

void Segment::close_descriptor() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

int Segment::creator() const { return static_cast<int>(header_->creator & kPidMask); }
int Segment::creator_descriptor() const { return header_->creator_descriptor; }
bool Segment::creator_runs() const {
  return header_->creator_namespace != own_namespace() || runs(header_->creator);
}

BlockHeader& Segment::block(uint32_t index) const {
  return reinterpret_cast<BlockHeader*>(base_ + kHeaderBytes)[index];
}
std::atomic<uint32_t>& Segment::blocks_used() const { return header_->blocks_used; }
std::atomic<int64_t>& Segment::warm_bytes() const { return header_->warm_bytes; }
std::atomic<int64_t>& Segment::most_warm_bytes() const { return header_->most_warm_bytes; }
std::atomic<uint64_t>& Segment::freed() const { return header_->freed; }
std::span<std::atomic<uint32_t>, Segment::kHints> Segment::hints() const { return header_->hints; }

uint32_t Segment::issue_ticket(uint32_t block) const {
  const uint32_t n = header_->tickets_issued.fetch_add(1);
  for (uint32_t i = 0; i < kTicketTries; i++) {
    const uint32_t index = (n + i) % kTickets;
    uint32_t free = 0;
    if (!header_->tickets[index].compare_exchange_strong(free, kTicketBeingIssued)) continue;
    header_->ticket_blocks[index].store(block);
    header_->ticket_locations[index].store(kUnknownLocation);
    header_->ticket_senders[index].store(slot_);
    const uint32_t ticket = (n % kMostSerial + 1) << kTicketBits | index;
    header_->tickets[index].store(ticket);
    return ticket;
  }
  return 0;
}
void Segment::set_location(uint32_t ticket, uint32_t location, uint64_t network) const {
  if (is_socket(location) && network != header_->network) location = kUnknownLocation;
  if (ticket != 0 && is_issued(ticket))
    header_->ticket_locations[ticket % kTickets].store(location);
}
bool Segment::redeem_ticket(uint32_t ticket) const {
  return header_->tickets[ticket % kTickets].compare_exchange_strong(ticket, 0);
}
bool Segment::is_issued(uint32_t ticket) const {
  return header_->tickets[ticket % kTickets].load() == ticket;
}
bool Segment::is_received(uint32_t ticket) const {
  return is_issued(ticket) && header_->ticket_locations[ticket % kTickets].load() == kReceived;
}

void Segment::populate(size_t offset, size_t bytes) const {
  check_memory(bytes);
  TD_CHECK_AS(ErrorKind::kOutOfMemory, allocate_pages(descriptor_, offset, bytes),
              "share_memory: cannot get {} bytes of shared memory: {}", static_cast<int64_t>(bytes),
              std::strerror(errno));
  madvise(base_ + offset, bytes, MADV_POPULATE_WRITE);  // one call in place of a fault a page
}

void Segment::discard(size_t offset, size_t bytes) const {
  madvise(base_ + offset, bytes, MADV_REMOVE);
}

int Segment::take_slot(uint64_t who) {
  for (size_t slot = 0; slot < kMostProcesses; slot++) {
    uint64_t free = 0;
    if (!header_->processes[slot].compare_exchange_strong(free, who)) continue;
    header_->namespaces[slot].store(own_namespace());
    return static_cast<int>(slot);
  }
  return -1;
}

bool Segment::join() {
  slot_ = take_slot(own_identity());
  return slot_ >= 0;
}
int Segment::reserve_for_child() { return take_slot(kReserved); }
void Segment::become_child(int slot) {
  slot_ = slot;
  if (slot < 0) return;
  header_->namespaces[static_cast<size_t>(slot)].store(own_namespace());
  header_->processes[static_cast<size_t>(slot)].store(own_identity());
}
void Segment::leave(int slot) {
  header_->namespaces[static_cast<size_t>(slot)].store(0);
  header_->processes[static_cast<size_t>(slot)].store(0);
}
bool Segment::is_reserved(int slot) const {
  return header_->processes[static_cast<size_t>(slot)].load() == kReserved;
}

std::vector<int> Segment::dead_slots() const {
  const std::string name = name_of(id_);
  const uint64_t here = own_namespace();
  std::vector<int> dead;
  for (int slot = 0; slot < kMostProcesses; slot++) {
    const uint64_t who = header_->processes[static_cast<size_t>(slot)].load();
    if (who == 0 || who == kReserved || slot == slot_) continue;
    if (header_->namespaces[static_cast<size_t>(slot)].load() != here) continue;
    if (!runs(who) || !maps(static_cast<pid_t>(who & kPidMask), name)) dead.push_back(slot);
  }
  return dead;
}

std::vector<Segment::Message> Segment::unsent_messages(const std::vector<int>& senders) const {
  std::vector<Message> unsent;
  for (uint32_t i = 0; !senders.empty() && i < kTickets; i++) {
    const uint32_t ticket = header_->tickets[i].load();
    if (ticket < kTickets || header_->ticket_locations[i].load() != kWithSender) continue;
    const int sender = header_->ticket_senders[i].load();
    const uint32_t index = header_->ticket_blocks[i].load();
    if (index < blocks_used().load() && std::ranges::count(senders, sender) > 0)
      unsent.push_back({ticket, index});
  }
  return unsent;
}

// Sockets are asked about after the tickets have been read: one that is new then is in no ticket.
// Who takes a message out of a socket says so before it closes that: where the socket is gone, the
// tickets say which messages were received.
std::vector<Segment::Message> Segment::lost_messages() const {
  std::map<uint32_t, std::vector<Message>> by_socket;
  for (uint32_t i = 0; i < kTickets; i++) {
    const uint32_t ticket = header_->tickets[i].load();
    const uint32_t location = header_->ticket_locations[i].load();
    const uint32_t index = header_->ticket_blocks[i].load();
    if (ticket < kTickets || !is_socket(location)) continue;
    if (index < blocks_used().load()) by_socket[location].push_back({ticket, index});
  }
  std::vector<Message> lost;
  if (by_socket.empty() || UnixSockets::network() != header_->network) return lost;
  UnixSockets sockets;
  for (const auto& [socket, messages] : by_socket) {
    if (sockets.find(socket) != UnixSockets::State::kGone) continue;
    std::ranges::copy_if(messages, std::back_inserter(lost), [&](const Message& message) {
      return header_->ticket_locations[message.ticket % kTickets].load() == socket;
    });
  }
  return lost;
}

bool Segment::begin_sweep() {
  uint64_t who = header_->sweeper.load();
  return (who == 0 || !runs(who)) && header_->sweeper.compare_exchange_strong(who, own_identity());
}
void Segment::end_sweep() { header_->sweeper.store(0); }

}  // namespace taeda::shared
