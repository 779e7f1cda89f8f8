// Words of a shell's command line. Pure; from any thread.
#pragma once

#include <string>
#include <string_view>

namespace stoker {

// As one word of a command line: in quotes where a shell would take it apart.
std::string shell_word(std::string_view word);

}  // namespace stoker
