#!/usr/bin/python3
"""A partner's auth server: signs the two tokens of a user (docs/AUTH.md). Needs PyJWT; put TLS in front of it."""
import functools, hashlib, hmac, http.server, json, os, time, urllib.request

import jwt

THICKET, API_KEY, AUTH_KEY = (os.environ[name] for name in ("THICKET_URL", "PARTNER_API_KEY", "PARTNER_AUTH_KEY"))
stretch = functools.partial(hashlib.scrypt, n=2**14, r=8, p=1)
USERS = {"ada@example.com": {"salt": b"random", "hash": stretch(b"correct horse", salt=b"random")}}  # Yours: a database.


def sign(header, **claims):
    claims["exp"] = int(time.time()) + int(os.environ.get("TOKEN_SECONDS", "900"))
    return jwt.encode(claims, AUTH_KEY, algorithm="HS512", headers=header)


def register(name):
    token = sign({}, rezolve_entity_id=":NONE:", partner_entity_id=name)
    fields = {"x-rezolve-partner-apikey": API_KEY, "authorization": "Bearer " + token, "content-type": "application/json"}
    url, body = THICKET + "/api/v1/authentication/register", json.dumps({"email": name}).encode()
    return json.load(urllib.request.urlopen(urllib.request.Request(url, body, fields), timeout=10))["entity_id"]


class Login(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(min(int(self.headers["Content-Length"]), 4096)))
        name, password, device = asked["user"], asked["password"], asked["device_id"]
        user = USERS.get(name, {"salt": b"", "hash": b""})  # Nobody: the same work, the same answer.
        if not hmac.compare_digest(user["hash"], stretch(password.encode(), salt=user["salt"])):
            return self.send_error(401)
        user["entity"] = user.get("entity") or register(name)
        token = sign({"auth": "v2"}, rezolve_entity_id=user["entity"], partner_entity_id=name, device_id=device)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"access_token": token, "entity_id": user["entity"]}).encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "0"))), Login)
print(server.server_port, flush=True)
server.serve_forever()
