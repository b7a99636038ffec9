// The command of a channel whose other end is in the test itself: passes its standard input and output to the Unix
// socket $1, and ends. usage: hand_over SOCKET .. (the rest is what a runner adds)
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

int main(int argc, char** argv) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (argc < 2 || std::strlen(argv[1]) >= sizeof address.sun_path) return 2;
  std::strcpy(address.sun_path, argv[1]);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return 3;
  const int passed[] = {STDIN_FILENO, STDOUT_FILENO};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof passed)] = {};
  char byte = 'x';
  iovec one{&byte, 1};
  msghdr message{};
  message.msg_iov = &one;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof passed);
  std::memcpy(CMSG_DATA(header), passed, sizeof passed);
  return sendmsg(fd, &message, 0) == 1 ? 0 : 4;
}
