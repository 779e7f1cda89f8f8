add_library(stoker_warnings INTERFACE)
target_compile_options(stoker_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<BOOL:${STOKER_WERROR}>:-Werror>)
