// Ctrl-C: the first one asks the verb to stop and say what it has; a second one ends the program at once.
#pragma once

namespace stoker::cli {

void watch_for_interrupt();        // SIGINT from now on
void watch_for_termination();      // SIGTERM and SIGHUP too: for verbs that have something to put away
bool interrupted() noexcept;       // any thread
int interruption_code() noexcept;  // what the program then returns: 128 + the signal, so 130 after Ctrl-C; any thread

}  // namespace stoker::cli
