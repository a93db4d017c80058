"""Small proxies for the tests of the client's transport. Each prints its port and then a line for what it does.

proxies.py tls CERTIFICATE KEY PORT     ends TLS and passes the bytes to PORT on this machine
proxies.py connect [--user NAME:PASSWORD] [--refuse CODE]
                                        an HTTP proxy that knows CONNECT only
"""
import argparse
import asyncio
import base64
import ssl


def say(text):
    print(text, flush=True)


async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except (OSError, ssl.SSLError):
        pass
    finally:
        writer.close()


async def join(reader, writer, port):
    other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.gather(copy(reader, other_writer), copy(other_reader, writer))


async def tls(arguments):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(arguments.certificate, arguments.key)

    async def serve(reader, writer):
        say("secured")
        await join(reader, writer, arguments.port)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    say(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def connect(arguments):
    wanted = arguments.user and "basic " + base64.b64encode(arguments.user.encode()).decode()

    async def serve(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        say(head[0])
        given = [line[20:].strip() for line in head if line.lower().startswith("proxy-authorization:")]
        method, target, _ = head[0].split(" ")
        if arguments.refuse:
            status = f"{arguments.refuse} No"
        elif wanted and [value[:6].lower() + value[6:] for value in given] != [wanted]:
            status = "407 Who\r\nProxy-Authenticate: Basic realm=\"test\""
        elif method != "CONNECT":
            status = "405 CONNECT only"
        else:
            writer.write(b"HTTP/1.1 200 Go on\r\n\r\n")
            say("through")
            return await join(reader, writer, int(target.rsplit(":", 1)[1]))
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        say("refused")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    say(server.sockets[0].getsockname()[1])
    await server.serve_forever()


parser = argparse.ArgumentParser()
kinds = parser.add_subparsers(required=True)
kind = kinds.add_parser("tls")
kind.add_argument("certificate")
kind.add_argument("key")
kind.add_argument("port", type=int)
kind.set_defaults(run=tls)
kind = kinds.add_parser("connect")
kind.add_argument("--user")
kind.add_argument("--refuse", type=int)
kind.set_defaults(run=connect)
arguments = parser.parse_args()
asyncio.run(arguments.run(arguments))
