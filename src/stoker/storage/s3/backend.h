// S3 as a storage backend: s3://bucket/key, reached as the environment and the files of Amazon's tools say.
#pragma once

#include "stoker/storage/backend.h"

namespace stoker::storage::s3 {

const Backend& s3_objects() noexcept;

}  // namespace stoker::storage::s3
