// Which file holds the certificates to trust, where no setting of S3 names one. libcurl inside a wheel was compiled
// elsewhere, and does not know where this system keeps them. Any thread may call it.
#pragma once

#include <string>

#include "stoker/storage/s3/settings.h"

namespace stoker::storage::s3 {

// The first of: CURL_CA_BUNDLE; SSL_CERT_FILE; the bundle of Debian, Red Hat, SUSE or Alpine below `root`; the bundle
// of certifi, or of the copy of it inside pip, in the site-packages that `own_file` (a program or a Python module)
// belongs to. Empty: there is none, and libcurl uses what it was compiled with.
std::string trusted_certificates(const Environment& environment, const std::string& root, const std::string& own_file);
std::string trusted_certificates(const Environment& environment);  // of this system and this process

}  // namespace stoker::storage::s3
