"""Drives an echo server with python3-websockets, an implementation that shares nothing with ours.

usage: /usr/bin/python3 drive_websockets.py PORT
The server echoes text and binary at /ws, answers 404 elsewhere, and takes messages of at most 1 MiB.
"""
import asyncio
import sys

import websockets

PORT = int(sys.argv[1])
URL = f"ws://127.0.0.1:{PORT}/ws"
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        raise SystemExit(f"FAILED: {what}")


async def sizes():
    async with websockets.connect(URL, max_size=None) as peer:
        for size in [0, 1, 125, 126, 127, 65535, 65536, 500_000, 1 << 20]:
            text = "x" * size
            await peer.send(text)
            check(await peer.recv() == text, f"text of {size}")
            data = bytes(i & 0xFF for i in range(size))
            await peer.send(data)
            check(await peer.recv() == data, f"binary of {size}")


async def compression_is_not_agreed():
    async with websockets.connect(URL, compression="deflate") as peer:
        check(peer.extensions == [], "no extension although one was offered")
        check(peer.subprotocol is None, "no subprotocol")


async def unicode_and_fragments():
    async with websockets.connect(URL) as peer:
        text = "κόσμε 🌲 日本語 e\u0301"
        await peer.send(text)
        check(await peer.recv() == text, "text beyond ASCII")
        await peer.send([text[:3], "", text[3:9], text[9:]])
        check(await peer.recv() == text, "text in fragments")
        await peer.send([b"\x00\xff", b"\x80"])
        check(await peer.recv() == b"\x00\xff\x80", "binary in fragments")


async def pings():
    async with websockets.connect(URL) as peer:
        for payload in [b"", b"a", bytes(125)]:
            waiter = await peer.ping(payload)
            await asyncio.wait_for(waiter, 5)
            check(True, "pong")


async def closing():
    for code in [1000, 1001, 3000, 4999]:
        peer = await websockets.connect(URL)
        await peer.close(code, "done")
        check(peer.close_code == code, f"close code {code} comes back")


async def too_big():
    peer = await websockets.connect(URL)
    try:
        await peer.send("x" * ((1 << 20) + 1))
        await peer.recv()
        check(False, "an oversized message was taken")
    except websockets.ConnectionClosed:
        check(peer.close_code == 1009, f"1009 for an oversized message, was {peer.close_code}")


async def other_path():
    try:
        await websockets.connect(f"ws://127.0.0.1:{PORT}/elsewhere")
        check(False, "another path was upgraded")
    except websockets.InvalidStatusCode as error:
        check(error.status_code == 404, "404 elsewhere")


async def many():
    async def one(number):
        async with websockets.connect(URL) as peer:
            for turn in range(20):
                await peer.send(f"{number}/{turn}")
            for turn in range(20):
                check(await peer.recv() == f"{number}/{turn}", "order")

    await asyncio.gather(*(one(number) for number in range(40)))


async def main():
    for scenario in [sizes, compression_is_not_agreed, unicode_and_fragments, pings, closing, too_big, other_path, many]:
        await asyncio.wait_for(scenario(), 60)
    print(f"websockets {websockets.__version__}: {checks} checks")


asyncio.run(main())
