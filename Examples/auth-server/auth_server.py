#!/usr/bin/python3
"""A partner's auth server: signs the two tokens of a user. python3-jwt (PyJWT); settings come from the environment."""
import json, os, time, urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import jwt

THICKET, API_KEY, AUTH_KEY = (os.environ[name] for name in ("THICKET_URL", "PARTNER_API_KEY", "PARTNER_AUTH_KEY"))
USERS = {"ada@example.com": {"password": "correct horse", "entity": None}}  # Yours: a database, and no clear passwords.


def sign(header, **claims):
    claims["exp"] = int(time.time()) + int(os.environ.get("TOKEN_SECONDS", "900"))
    return jwt.encode(claims, AUTH_KEY, algorithm="HS512", headers=header)


def register(name):
    token = sign({}, rezolve_entity_id=":NONE:", partner_entity_id=name)
    fields = {"x-rezolve-partner-apikey": API_KEY, "Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    url, body = f"{THICKET}/api/v1/authentication/register", json.dumps({"email": name}).encode()
    return json.load(urllib.request.urlopen(urllib.request.Request(url, body, fields)))["entity_id"]


class Login(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        user = USERS.get(asked["user"])
        if user is None or user["password"] != asked["password"]:
            return self.send_error(401)
        user["entity"] = user["entity"] or register(asked["user"])
        token = sign({"auth": "v2"}, rezolve_entity_id=user["entity"], partner_entity_id=asked["user"], device_id=asked["device_id"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"access_token": token, "entity_id": user["entity"]}).encode())


server = HTTPServer(("127.0.0.1", int(os.environ.get("PORT", "0"))), Login)
print(server.server_port, flush=True)
server.serve_forever()
