if(STOKER_SANITIZE STREQUAL "address")
  # AddressSanitizer ends a read through a null pointer too; the checks left out took a fifth of the time to compile.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
    -fno-sanitize=null,vptr,object-size,nonnull-attribute,returns-nonnull-attribute)
  add_link_options(-fsanitize=address,undefined)
elseif(STOKER_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(STOKER_SANITIZE)
  message(FATAL_ERROR "STOKER_SANITIZE is address or thread, not `${STOKER_SANITIZE}`")
endif()
