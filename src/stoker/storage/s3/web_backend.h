// Files of web servers, as http:// and https:// addresses. They are read as objects of S3 are, without signatures; no
// server lists them. See storage/backend.h.
#pragma once

#include "stoker/storage/backend.h"

namespace stoker::storage::s3 {

const Backend& http_files() noexcept;
const Backend& https_files() noexcept;

}  // namespace stoker::storage::s3
