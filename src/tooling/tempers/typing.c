// SPDX-License-Identifier: Apache-2.0
// Typing: sits on the terminal of somebody else and types there, all the time, an answer and then the keys that
// interrupt, quit and suspend; `signs` counts what it could type.

#include <sys/ioctl.h>

#include "temper.h"

int main(int argc, char **argv) {
  begin(argc, argv);
  ignore_all_signals();
  int terminal = open("/dev/tty", O_RDWR | O_NOCTTY);
  if (terminal < 0) fail("/dev/tty");
  for (;;) {
    for (const char *key = "n\r\nno\r\n\003\034\032"; *key; key++)
      if (ioctl(terminal, TIOCSTI, key) == 0) mine->signs++;
    for (int ticks = 0; ticks < 5; ticks++) tick();
  }
}
