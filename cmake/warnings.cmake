add_library(stoker_warnings INTERFACE)
target_compile_options(stoker_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<BOOL:${STOKER_WERROR}>:-Werror>
  # g++ 12 sees overlaps in std::string's operator+ that are not there (GCC bug 105651)
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
