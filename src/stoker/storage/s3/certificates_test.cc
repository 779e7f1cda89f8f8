#include "stoker/storage/s3/certificates.h"

#include <map>

#include <gtest/gtest.h>

#include "stoker/os/temp_folder_test.h"

namespace stoker::storage::s3 {
namespace {

class S3Certificates : public ::testing::Test {
 protected:
  std::string trusted(const std::string& own_file = "") const {
    const Environment environment = [this](const char* name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
    return trusted_certificates(environment, folder_.path() + "/root", own_file);
  }
  std::string file(const std::string& name) const { return folder_.file(name, "-----BEGIN CERTIFICATE-----\n"); }

  os::TempFolder folder_;
  std::map<std::string, std::string> variables_;
};

TEST_F(S3Certificates, AreThoseOfTheSystemWhereverItKeepsThem) {
  EXPECT_EQ(trusted(), "");
  const std::string red_hat = file("root/etc/pki/tls/certs/ca-bundle.crt");
  EXPECT_EQ(trusted(), red_hat);
  const std::string debian = file("root/etc/ssl/certs/ca-certificates.crt");
  EXPECT_EQ(trusted(), debian);
}

TEST_F(S3Certificates, VariablesNameOthers) {
  file("root/etc/ssl/certs/ca-certificates.crt");
  variables_["SSL_CERT_FILE"] = "/mine.pem";
  EXPECT_EQ(trusted(), "/mine.pem");
  variables_["CURL_CA_BUNDLE"] = "/curl.pem";
  EXPECT_EQ(trusted(), "/curl.pem");
}

TEST_F(S3Certificates, WithoutThemCertifiHasThemForTheModuleAndForTheProgram) {
  const std::string site = "venv/lib/python3.12/site-packages/";
  const std::string module = file(site + "stoker/_engine.so"), program = file("venv/bin/stoker");
  EXPECT_EQ(trusted(module), "");
  EXPECT_EQ(trusted(program), "");
  const std::string of_pip = file(site + "pip/_vendor/certifi/cacert.pem");
  EXPECT_EQ(trusted(module), of_pip);
  EXPECT_EQ(trusted(program), of_pip);
  const std::string certifi = file(site + "certifi/cacert.pem");
  EXPECT_EQ(trusted(module), certifi);
  EXPECT_EQ(trusted(program), certifi);
  const std::string debian = file("root/etc/ssl/certs/ca-certificates.crt");
  EXPECT_EQ(trusted(program), debian) << "an administrator may have added some";
}

}  // namespace
}  // namespace stoker::storage::s3
