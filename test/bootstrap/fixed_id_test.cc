// FCCL_COMM_ID: a rendezvous at a fixed place, opened by rank 0, with a secret from a file.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/ranks.h"
#include "bootstrap/socket.h"

using namespace fccl;

namespace {

class SecretFile {
 public:
  explicit SecretFile(const std::string& content, mode_t mode = 0600) {
    char path[] = "/tmp/fccl-test-XXXXXX";
    const int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    path_ = path;
    REQUIRE(write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
    REQUIRE(fchmod(fd, mode) == 0);
    close(fd);
  }
  ~SecretFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A port that nobody has at the moment.
std::string free_port() {
  Result<std::vector<Address>> any = resolve_address("127.0.0.1:1");
  Address address = (*any)[0];
  address.port = 0;
  Result<Listener> listener = listen_tcp(address);
  REQUIRE(listener.ok());
  return std::to_string(address.port);
}

Config fixed_config(const std::string& comm_id, const std::string& secret_file) {
  Config config = plain_config();
  config.comm_id = comm_id;
  config.comm_secret_file = secret_file;
  return config;
}

const char kSecretText[] = "a secret of enough random bytes\n";

}  // namespace

TEST_CASE("B07 300 inits on one fixed port, one after the other") {
  const SecretFile file(kSecretText);
  const Config config = fixed_config("127.0.0.1:" + free_port(), file.path());
  for (int round = 0; round < (kPatience > 1 ? 20 : 300); round++) {
    INFO("round " << round);
    const Groups groups = groups_of(join_setups(make_id(config), setups_of(2, config)));
    if (round % 2 == 0) leave_all(groups);
  }
}

TEST_CASE("rank 0 of a fixed id may come last, and every rank may make the id itself") {
  const SecretFile file(kSecretText);
  const Config config = fixed_config("localhost:" + free_port(), file.path());
  std::vector<Joined> joined(3);
  std::vector<std::thread> threads;
  for (int rank = 2; rank >= 0; rank--) {
    threads.emplace_back([&, rank] {
      IdBytes id;
      joined[static_cast<size_t>(rank)].status = create_unique_id(config, id.bytes);
      joined[static_cast<size_t>(rank)] =
          join_one(id, setups_of(3, config)[static_cast<size_t>(rank)]);
    });
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  for (std::thread& thread : threads) thread.join();
  leave_all(groups_of(joined));
}

TEST_CASE("an error at a fixed port does not block the next init there") {
  const SecretFile file(kSecretText);
  const Config config = fixed_config("127.0.0.1:" + free_port(), file.path());
  std::vector<RankSetup> setups = setups_of(3, config);
  setups.pop_back();
  for (RankSetup& setup : setups) setup.timeout_ms = 300;
  check_same_error(
      statuses_of(join_setups(make_id(config), setups)), Code::Timeout, "rank 2 did not come");
  leave_all(groups_of(join_setups(make_id(config), setups_of(3, config))));
}

TEST_CASE("a fixed port that another program has is an error at once") {
  const SecretFile file(kSecretText);
  Result<std::vector<Address>> any = resolve_address("127.0.0.1:1");
  Address address = (*any)[0];
  address.port = 0;
  Result<Listener> taken = listen_tcp(address);
  REQUIRE(taken.ok());
  const Config config = fixed_config(address.text(), file.path());
  const Joined joined = join_one(make_id(config), setups_of(1, config)[0]);
  CHECK(joined.status.code() == Code::SystemError);
  CHECK(contains(joined.status.text(), "in use"));
  CHECK(joined.ms < bound_ms(1000));
}

TEST_CASE("a fixed id with another secret does not meet, and says so") {
  const SecretFile file(kSecretText);
  const SecretFile other("another secret of enough bytes");
  const std::string place = "127.0.0.1:" + free_port();
  Joined joined[2];
  std::vector<std::thread> threads;
  for (int rank : {0, 1})
    threads.emplace_back([&, rank] {
      const Config config = fixed_config(place, rank == 0 ? file.path() : other.path());
      IdBytes id;
      RankSetup setup = setups_of(2, config)[static_cast<size_t>(rank)];
      setup.timeout_ms = bound_ms(500);
      joined[rank].status = create_unique_id(config, id.bytes);
      joined[rank] = join_one(id, setup);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(joined[0].status.code() == Code::Timeout);
  CHECK(contains(joined[0].status.text(), "rank 1 did not come"));
  CHECK(joined[1].status.code() == Code::Timeout);
  CHECK(contains(joined[1].status.text(), "another secret"));
}

TEST_CASE("the secret file must be the owner's alone, and hold enough") {
  uint8_t id[kUniqueIdBytes];
  const auto try_with = [&](const std::string& path) {
    return create_unique_id(fixed_config("127.0.0.1:4000", path), id);
  };
  const Status missing = try_with("");
  CHECK(missing.code() == Code::InvalidArgument);
  CHECK(contains(missing.text(), "FCCL_COMM_SECRET_FILE"));
  CHECK(try_with("/nonexistent/file").code() == Code::InvalidArgument);
  CHECK(try_with("/tmp").code() == Code::InvalidArgument);
  CHECK(try_with("/dev/null").code() == Code::InvalidArgument);
  const Status open_to_all = try_with(SecretFile(kSecretText, 0640).path());
  CHECK(open_to_all.code() == Code::InvalidArgument);
  CHECK(try_with(SecretFile("short").path()).code() == Code::InvalidArgument);
  const SecretFile readable(kSecretText, 0604);
  CHECK(contains(try_with(readable.path()).text(), "0600"));
  const SecretFile good(kSecretText, 0400);
  CHECK(try_with(good.path()).ok());
  CHECK_FALSE(contains(missing.text() + open_to_all.text(), "enough random"));
}
