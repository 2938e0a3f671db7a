// Rendezvous service: one thread, in the process that made the unique id, that brings the ranks of
// one init together.
//
//   rank -> service   handshake (secure_channel.h), then RendezvousHello: its deadline, where it
//   listens service -> rank   Welcome: the hello is taken; until then the rank may try again
//   service -> ranks  Table, when all are here: a fresh secret for the mesh, and everybody's card
//   rank -> service   Report: its streams to all peers stand, or why not
//   service -> ranks  Done, when all have reported: ok, and the service ends
//
// Any error (a rank that is missing at the first deadline, comes twice, is out of range, has
// another number of ranks or version, reports a failure, or hangs up) turns the service into one
// that answers Done with that error, to those who are here at once and to latecomers for a while,
// so that all ranks end with the same words. Strangers: see acceptor.h; nothing they do can make
// the service wait. Invariant: one id serves one init. Once all ranks are here nothing listens any
// more.
#pragma once
#include <list>
#include <memory>
#include <optional>

#include "base/unique_fd.h"
#include "bootstrap/acceptor.h"
#include "bootstrap/messages.h"

namespace fccl {

class RendezvousService {
 public:
  // Takes the listeners and starts the thread. `idle_ms`: how long to wait for the first rank.
  // `fixed`: the same place serves one init after the other, so a latecomer after a failure may
  // belong to the next one and is not answered.
  static Result<std::shared_ptr<RendezvousService>> start(const Secret& secret,
                                                          std::vector<Listener> listeners,
                                                          int64_t idle_ms, bool fixed);
  // Ends it soon; the listeners are closed when it has ended.
  void request_stop();
  bool ended() const { return ended_.load(std::memory_order_acquire); }

 private:
  struct Client {
    Stream stream;
    Hello hello;
    RendezvousHello card;
    Deadline deadline;
    bool reported = false;
    bool answered = false;
  };
  enum class Phase { Collecting, Meshing, Failed, Done };

  RendezvousService(Acceptor acceptor, int64_t idle_ms, bool fixed);
  void run();
  void loop();
  int sleep_ms() const;
  void take(Accepted accepted);
  Status check(const Client& newcomer) const;
  Status check_against(const Client& newcomer, const Client& other) const;
  void serve(Client& client, short events);
  void take_message(Client& client, const std::vector<uint8_t>& bytes);
  void hang_up(Client& client);
  void check_deadlines();
  void send_table();
  void finish();
  void fail(const Status& status);
  void answer(Client& client);
  std::vector<int> missing_ranks() const;

  std::optional<Acceptor> acceptor_;
  const bool fixed_;
  UniqueFd wake_;
  Phase phase_ = Phase::Collecting;
  std::list<Client> clients_;
  Status verdict_;
  int ranks_ = 0;  // what the first rank said
  size_t answered_ = 0;
  Deadline idle_;  // for the first rank; after a failure, for latecomers
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_{false};
};

}  // namespace fccl
