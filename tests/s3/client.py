"""A small S3 client of the standard library that signs its requests: how the tests fill a real store."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import http.client
import urllib.parse


class S3Client:
    def __init__(self, port: int, access_key: str, secret_key: str, region: str = "us-east-1") -> None:
        self.host = f"127.0.0.1:{port}"
        self.access_key, self.secret_key, self.region = access_key, secret_key, region
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def request(self, method: str, path: str, body: bytes = b"", query: str = "") -> http.client.HTTPResponse:
        """`path` and `query` are encoded already; the query is sorted."""
        now = datetime.datetime.now(datetime.timezone.utc)
        stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        digest = hashlib.sha256(body).hexdigest()
        headers = {"host": self.host, "x-amz-content-sha256": digest, "x-amz-date": stamp}
        names = ";".join(headers)
        canonical = "\n".join([method, path, query, *(f"{name}:{value}" for name, value in headers.items()), "", names, digest])
        scope = f"{day}/{self.region}/s3/aws4_request"
        to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = b"AWS4" + self.secret_key.encode()
        for word in (day, self.region, "s3", "aws4_request"):
            key = hmac.new(key, word.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
        headers["authorization"] = f"AWS4-HMAC-SHA256 Credential={self.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        self.connection.request(method, path + (f"?{query}" if query else ""), body, headers)
        answer = self.connection.getresponse()
        answer.text = answer.read()
        return answer

    def make_bucket(self, bucket: str) -> None:
        answer = self.request("PUT", f"/{bucket}")
        assert answer.status in (200, 409), answer.text  # 409: it is there

    def put(self, bucket: str, key: str, body: bytes) -> None:
        answer = self.request("PUT", f"/{bucket}/{urllib.parse.quote(key, safe='/-_.~')}", body)
        assert answer.status == 200, (key, answer.status, answer.text)
