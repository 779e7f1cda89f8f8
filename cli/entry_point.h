// Functions of Python programs, as the command line names them.
#pragma once

#include <string>

namespace stoker::cli {

// package.module:function or path/to/file.py:function, and no file of that very name.
bool names_function(const std::string& text);

}  // namespace stoker::cli
