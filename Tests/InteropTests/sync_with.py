"""Syncs with a running thicketd through a WebSocket library of others.

usage: /usr/bin/python3 sync_with.py websockets|wsproto PORT TOKEN USER [CERTIFICATES]
With a file of certificates to trust it comes over TLS.
Speaks the streaming protocol as its description says and knows nothing of our code: two clients of one user open a
bucket, one creates and edits an object, the other sees it, both catch up by cv, and mistakes get their codes.
"""
import json
import socket
import ssl
import sys
import uuid

LIBRARY, PORT, TOKEN, USER = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
TLS = ssl.create_default_context(cafile=sys.argv[5]) if len(sys.argv) > 5 else None
TARGET = "/sock/1/notes/websocket"
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        raise SystemExit(f"FAILED: {what}")


class ThroughWebsockets:
    def __init__(self):
        import asyncio
        import websockets

        self.loop = asyncio.new_event_loop()
        self.wait = lambda work: self.loop.run_until_complete(asyncio.wait_for(work, 20))
        self.peer = self.wait(self.connect(websockets))

    async def connect(self, websockets):
        scheme = "wss" if TLS else "ws"
        return await websockets.connect(
            f"{scheme}://127.0.0.1:{PORT}{TARGET}", ping_interval=None, max_size=None, ssl=TLS)

    def send(self, text):
        self.wait(self.peer.send(text))

    def receive(self):
        return self.wait(self.peer.recv())

    def close(self):
        self.wait(self.peer.close())
        return self.peer.close_code


class ThroughWsproto:
    def __init__(self):
        from wsproto import ConnectionType, WSConnection, events

        self.events = events
        self.socket = socket.create_connection(("127.0.0.1", PORT), timeout=20)
        if TLS:
            self.socket = TLS.wrap_socket(self.socket, server_hostname="127.0.0.1")
        self.protocol = WSConnection(ConnectionType.CLIENT)
        self.waiting = []
        self.say(events.Request(host="localhost", target=TARGET))
        check(isinstance(self.event(), events.AcceptConnection), "the opening is accepted")

    def say(self, event):
        self.socket.sendall(self.protocol.send(event))

    def event(self):
        while not self.waiting:
            self.protocol.receive_data(self.socket.recv(65536) or None)
            self.waiting = list(self.protocol.events())
        return self.waiting.pop(0)

    def send(self, text):
        self.say(self.events.TextMessage(data=text))

    def receive(self):
        text = ""
        while True:
            event = self.event()
            check(isinstance(event, self.events.TextMessage), f"a text message, was {event!r}")
            text += event.data
            if event.message_finished:
                return text

    def close(self):
        self.say(self.events.CloseConnection(code=1000))
        return self.event().code


class Client:
    def __init__(self, name):
        self.wire = {"websockets": ThroughWebsockets, "wsproto": ThroughWsproto}[LIBRARY]()
        self.name = name

    def open(self, command=None, token=TOKEN):
        request = {
            "name": "note", "clientid": self.name, "api": "1.1", "token": token, "app_id": "notes",
            "library": "interop", "version": "1",
        }
        if command:
            request["cmd"] = command
        self.wire.send("0:init:" + json.dumps(request))
        return self.wire.receive()

    def ask(self, command):
        self.wire.send("0:" + command)
        return self.wire.receive()

    def index(self):
        return json.loads(self.wire.receive().removeprefix("0:i:"))

    def change(self, key, diff, version=None, change_id=None):
        change = {"clientid": self.name, "id": key, "o": "M", "v": diff, "ccid": change_id or uuid.uuid4().hex}
        if version is not None:
            change["sv"] = version
        self.wire.send("0:c:" + json.dumps(change))
        return change["ccid"]

    def changes(self):
        text = self.wire.receive()
        check(text.startswith("0:c:["), f"changes, was {text[:80]!r}")
        return json.loads(text.removeprefix("0:c:"))


ann, bob = Client("ann-1"), Client("ann-2")
# A channel hears of others' changes from its first index or cv on.
for client in [ann, bob]:
    check(client.open(command="i:1:::10") == f"0:auth:{USER}", "the user is told")
    page = client.index()
    check(page["index"] == [] and page.get("current"), "an empty bucket has a position")
start = page["current"]

ccid = ann.change("first", {"title": {"o": "+", "v": "Oak"}, "count": {"o": "+", "v": 1}})
for client in [ann, bob]:
    [event] = client.changes()
    check(event["ccids"] == [ccid] and event["id"] == "first" and event["ev"] == 1, "both hear of it")
    check(event["v"]["title"] == {"o": "+", "v": "Oak"} and "sv" not in event, "as it was sent")

ccid = bob.change("first", {"title": {"o": "d", "v": "=3\t+ and elm 🌳"}, "count": {"o": "I", "v": 2}}, version=1)
for client in [ann, bob]:
    [event] = client.changes()
    check(event["ccids"] == [ccid] and event["sv"] == 1 and event["ev"] == 2, "an edit has its versions")
last = event["cv"]

head, data = ann.ask("e:first.2").split("\n", 1)
check(head == "0:e:first.2" and json.loads(data)["data"] == {"title": "Oak and elm 🌳", "count": 3}, "the object")
check(json.loads(ann.ask("e:first.1").split("\n", 1)[1])["data"]["title"] == "Oak", "an older version")
check(ann.ask("e:none.1") == "0:e:none.1\n?", "no such object")

check([e["ev"] for e in json.loads(bob.ask("cv:" + start).removeprefix("0:c:"))] == [1, 2], "catching up by cv")
check(bob.ask("cv:" + last) == "0:c:[]", "nothing is missed")
check(bob.ask("cv:" + "0" * 24) == "0:cv:?", "a position of elsewhere")

ann.change("first", {"title": {"o": "+", "v": "twice"}}, version=2, change_id=ccid)
check(ann.changes()[0].get("error") == 409, "a change is taken once")
ann.change("nowhere", {"title": {"o": "r", "v": "x"}}, version=7)
check(ann.changes()[0].get("error") in (404, 405), "a version nobody has")
ann.change("first", {"title": {"o": "d", "v": "=99"}}, version=2)
check(ann.changes()[0].get("error") == 440, "a diff that does not fit")

ann.wire.send("h:1")
check(ann.wire.receive() == "h:2", "a heartbeat")
stranger = Client("x")
check("401" in stranger.open(token="0" * 32), "a token nobody was given")
for client in [ann, bob, stranger]:
    check(client.wire.close() == 1000, "a close is answered")
print(f"sync through {LIBRARY}: {checks} checks")
