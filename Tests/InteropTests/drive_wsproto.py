"""Drives an echo server with python3-wsproto over plain sockets, an implementation that shares nothing with ours.

usage: /usr/bin/python3 drive_wsproto.py PORT
The server echoes text and binary at /ws, answers 404 elsewhere, and takes messages of at most 1 MiB.
"""
import socket
import sys

import wsproto
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection, BytesMessage, CloseConnection, Message, Ping, Pong, RejectConnection, Request, TextMessage,
)
from wsproto.extensions import PerMessageDeflate

PORT = int(sys.argv[1])
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        raise SystemExit(f"FAILED: {what}")


class Peer:
    def __init__(self, target="/ws", extensions=()):
        self.socket = socket.create_connection(("127.0.0.1", PORT), timeout=20)
        self.protocol = WSConnection(ConnectionType.CLIENT)
        self.waiting = []
        self.send(Request(host="localhost", target=target, extensions=list(extensions)))
        self.answer = self.event()

    def send(self, event):
        self.socket.sendall(self.protocol.send(event))

    def event(self):
        """The next event; None at the end of the connection."""
        while not self.waiting:
            data = self.socket.recv(65536)
            self.protocol.receive_data(data or None)
            self.waiting = list(self.protocol.events())
            if not data and not self.waiting:
                return None
        return self.waiting.pop(0)

    def message(self):
        """The next whole message; wsproto hands out pieces."""
        parts = []
        while True:
            event = self.event()
            check(isinstance(event, Message), f"a message and not {event!r}")
            parts.append(event.data)
            if event.message_finished:
                return (b"" if isinstance(parts[0], (bytes, bytearray)) else "").join(parts)


def echo():
    peer = Peer()
    check(isinstance(peer.answer, AcceptConnection), "accepted")
    for size in [0, 1, 125, 126, 127, 65535, 65536, 1 << 20]:
        peer.send(TextMessage(data="y" * size))
        check(peer.message() == "y" * size, f"text of {size}")
        data = bytes((i * 7) & 0xFF for i in range(size))
        peer.send(BytesMessage(data=data))
        check(bytes(peer.message()) == data, f"binary of {size}")


def fragments_with_pings_between():
    peer = Peer()
    peer.send(TextMessage(data="κόσ", message_finished=False))
    peer.send(Ping(payload=b"between"))
    event = peer.event()
    check(isinstance(event, Pong) and event.payload == b"between", "a pong inside a message")
    peer.send(TextMessage(data="με", message_finished=True))
    check(peer.message() == "κόσμε", "the message goes on behind it")


def many_in_one_packet():
    peer = Peer()
    packet = b"".join(peer.protocol.send(TextMessage(data=str(number))) for number in range(500))
    peer.socket.sendall(packet)
    for number in range(500):
        check(peer.message() == str(number), "order")


def byte_by_byte():
    peer = Peer()
    for byte in peer.protocol.send(TextMessage(data="drip 🌲")):
        peer.socket.sendall(bytes([byte]))
    check(peer.message() == "drip 🌲", "a frame byte by byte")


def closing():
    for code in [1000, 1001, 3000, 4999]:
        peer = Peer()
        peer.send(CloseConnection(code=code, reason="done"))
        event = peer.event()
        check(isinstance(event, CloseConnection) and event.code == code, f"close code {code} comes back")
        check(peer.socket.recv(1) == b"", "the server ends the connection")


def broken_frames():
    for name, frame, code in [
        ("reserved bit", b"\xc1\x80\0\0\0\0", 1002), ("unmasked", b"\x81\x01a", 1002),
        ("reserved opcode", b"\x83\x80\0\0\0\0", 1002), ("no UTF-8", b"\x81\x81\0\0\0\0\xff", 1007),
        ("oversize", b"\x82\xff\0\0\0\0\0\x20\0\0\0\0\0\0", 1009),
    ]:
        peer = Peer()
        peer.socket.sendall(frame)
        event = peer.event()
        check(isinstance(event, CloseConnection) and event.code == code, f"{code} for {name}, was {event!r}")


def refused():
    peer = Peer(target="/elsewhere")
    check(isinstance(peer.answer, RejectConnection) and peer.answer.status_code == 404, "404 elsewhere")


def compression_is_not_agreed():
    peer = Peer(extensions=[PerMessageDeflate()])
    check(isinstance(peer.answer, AcceptConnection) and not peer.answer.extensions, "no extension")
    peer.send(TextMessage(data="plain"))
    check(peer.message() == "plain", "plain text")


for scenario in [
    echo, fragments_with_pings_between, many_in_one_packet, byte_by_byte, closing, broken_frames, refused,
    compression_is_not_agreed,
]:
    scenario()
print(f"wsproto {wsproto.__version__}: {checks} checks")
