// The demo of an object store: a training job that starves on S3, against a server on this machine. One thread.
#pragma once

#include "demo_telling.h"

namespace stoker::cli {

// The exit code. Throws Error; one where no server is installed names the remedy.
int tell_s3_story(const Face& face, const DemoFolder& folder, bool quick);

}  // namespace stoker::cli
