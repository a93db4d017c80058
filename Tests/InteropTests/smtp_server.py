"""A mail server for tests, on 127.0.0.1: takes messages as RFC 5321 says, or does what the recipient's name asks for.

    smtp_server.py [--starttls | --smtps] [--cert FILE --key FILE] [--login USER:PASSWORD] [--port PORT]

The first line of output names the port. Each message that was taken is one line of JSON behind it.

    refuse@   is refused for good, bad@ so at the end of its text
    later@    is not wanted the first time
    drop@     gets no answer to its text the first time: the connection breaks
    stall@    gets no answer at all
"""

import argparse
import base64
import json
import socket
import ssl
import threading
import time

options = argparse.ArgumentParser()
options.add_argument("--starttls", action="store_true")
options.add_argument("--smtps", action="store_true")
options.add_argument("--cert")
options.add_argument("--key")
options.add_argument("--login")
options.add_argument("--port", type=int, default=0)
options = options.parse_args()

seen = set()
lock = threading.Lock()
context = None
if options.cert:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(options.cert, options.key)


def is_first(address):
    with lock:
        first = address not in seen
        seen.add(address)
        return first


class Talk:
    def __init__(self, connection):
        self.connection, self.is_tls, self.user = connection, options.smtps, None
        if options.smtps:
            self.connection = context.wrap_socket(connection, server_side=True)
        self.file = self.connection.makefile("rb")

    def say(self, line):
        self.connection.sendall(line.encode() + b"\r\n")

    def run(self):
        self.say("220 test")
        sender = recipient = None
        while line := self.file.readline():
            word, _, rest = line.decode().strip().partition(" ")
            word = word.upper()
            if word in ("EHLO", "HELO"):
                lines = ["test"]
                if options.starttls and not self.is_tls:
                    lines.append("STARTTLS")
                if options.login and (self.is_tls or not context):
                    lines.append("AUTH PLAIN")
                for text in lines[:-1]:
                    self.say("250-" + text)
                self.say("250 " + lines[-1])
            elif word == "STARTTLS" and options.starttls:
                self.say("220 go on")
                self.connection = context.wrap_socket(self.connection, server_side=True)
                self.file, self.is_tls = self.connection.makefile("rb"), True
            elif word == "AUTH":
                _, _, proof = rest.partition(" ")
                if not proof:
                    self.say("334 ")
                    proof = self.file.readline().decode().strip()
                _, user, password = base64.b64decode(proof).decode().split("\0")
                if f"{user}:{password}" == options.login:
                    self.user = user
                    self.say("235 welcome")
                else:
                    self.say("535 wrong")
            elif word == "MAIL":
                sender = rest
                self.say("530 log in" if options.login and not self.user else "250 fine")
            elif word == "RCPT":
                recipient = rest[rest.index("<") + 1 : rest.index(">")]
                name = recipient.partition("@")[0]
                if name == "stall":
                    time.sleep(600)
                elif name == "refuse":
                    self.say("550 nobody here")
                elif name == "later" and is_first(recipient):
                    self.say("451 later")
                else:
                    self.say("250 fine")
            elif word == "DATA":
                self.say("354 go on")
                text = b""
                while (line := self.file.readline()) != b".\r\n":
                    if not line:
                        return
                    text += line[1:] if line.startswith(b".") else line
                name = recipient.partition("@")[0]
                if name == "drop" and is_first(recipient):
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if name == "bad":
                    self.say("554 not this")
                    continue
                entry = {
                    "from": sender, "to": recipient, "text": text.decode(), "tls": self.is_tls, "user": self.user,
                }
                with lock:
                    print(json.dumps(entry), flush=True)
                self.say("250 taken")
            elif word == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 fine" if word in ("RSET", "NOOP") else "502 no")


def serve(connection):
    try:
        Talk(connection).run()
    except (OSError, ValueError):
        pass
    finally:
        connection.close()


listener = socket.create_server(("127.0.0.1", options.port), backlog=64)
print(f"port:{listener.getsockname()[1]}", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
