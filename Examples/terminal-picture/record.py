#!/usr/bin/env python3
"""Records docs/images/two-devices.svg: a server and two devices that edit one sealed note.

usage: record.py FOLDER FILE    FOLDER has thicketd and thicket, FILE is the SVG to write

Each command runs for real, in the order in which the picture shows it, and each line of output is what it printed. Only
the pauses are set, and lines break where a pane ends. The accounts are made and logged in before the first command, as
that asks for a password. The program fails when the two edits do not merge, or when the server's files hold a word of
the note. Needs sqlite3 (Debian package sqlite3) and strings (binutils).
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from html import escape

# Size of a character, and of a pane in characters.
CHARACTER, ROW = 7.23, 17
HALF, GAP, EDGE = 68, 16, 12
ROWS_ABOVE, ROWS_BELOW = 13, 10
# Seconds before a command is shown, and between it and its output.
PAUSE, ANSWER = 1.2, 0.4

NOTE = '{"text": "%s"}'


class Pane:
    """The lines of one terminal, with the second at which each is shown."""

    def __init__(self, name, columns):
        self.name, self.columns, self.lines = name, columns, []

    def add(self, text, second, kind):
        while True:
            self.lines.append((text[: self.columns], second, kind))
            text = text[self.columns :]
            if not text:
                return


class Recording:
    def __init__(self, programs, folder):
        self.folder, self.second = folder, -PAUSE
        self.environment = {"PATH": programs + ":/usr/bin:/bin", "LANG": "C.UTF-8"}
        self.started, self.is_over = [], False

    def variables(self, name):
        home = os.path.join(self.folder, name)
        os.makedirs(home, exist_ok=True)
        password = {} if name == "server" else {"THICKET_PASSWORD": "correct horse battery staple"}
        return self.environment | password | {"HOME": home}

    def quietly(self, name, command):
        return subprocess.run(
            command, shell=True, check=True, cwd=self.folder, env=self.variables(name), capture_output=True, text=True
        ).stdout

    def run(self, pane, command, code=0):
        """Runs a command to its end, which must be with this exit code, and shows it with all that it printed."""
        self.second += PAUSE
        pane.add("$ " + command, self.second, "c")
        done = subprocess.run(
            command, shell=True, cwd=self.folder, env=self.variables(pane.name), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=60,
        )
        if done.returncode != code:
            raise SystemExit(f"record: '{command}' ended with {done.returncode}: {done.stdout}")
        self.second += ANSWER
        for line in done.stdout.splitlines():
            pane.add(line, self.second, "o")
        return done.stdout

    def start(self, pane, command):
        """Starts a program; its lines are shown as they come, beside what runs after it."""
        self.second += PAUSE
        pane.add("$ " + command, self.second, "c")
        process = subprocess.Popen(
            "exec " + command.removesuffix(" &"), shell=True, cwd=self.folder, env=self.variables(pane.name), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        self.started.append(process)
        lines = []

        def read():
            for line in process.stdout:
                lines.append(line)
                if not self.is_over:
                    pane.add(line.rstrip("\n"), self.second + ANSWER, "o")

        threading.Thread(target=read, daemon=True).start()
        return lines

    def wait(self, lines, text):
        end = time.monotonic() + 30
        while not any(text in line for line in list(lines)):
            if time.monotonic() > end:
                raise SystemExit(f"record: '{text}' never came; there is: {lines}")
            time.sleep(0.02)
        self.second += ANSWER

    def stop(self):
        self.is_over = True
        for process in reversed(self.started):
            process.terminate()
            process.wait()


def record(programs, folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    recording = Recording(programs, folder)
    laptop, desktop = Pane("laptop", HALF), Pane("desktop", HALF)
    server = Pane("server", 2 * HALF + round(GAP / CHARACTER) + 2)
    try:
        lines = recording.start(server, f"thicketd serve --data ./data --listen 127.0.0.1:{port} &")
        recording.wait(lines, "listening")
        key = recording.quietly("server", "thicketd app create notes --data ./data").split("api key")[1].split()[0]
        for name, verb in (("laptop", "signup"), ("desktop", "login")):
            address = f"--server http://127.0.0.1:{port} --app notes --api-key {key} --user ada@example.com"
            recording.quietly(name, f"thicket {verb} {address}")

        recording.run(laptop, "thicket put --sealed notes plan '%s'" % (NOTE % "Plant it in spring."))
        recording.run(desktop, "thicket get --sealed notes plan")
        recording.run(laptop, "thicket put --offline notes plan '%s'" % (NOTE % "Plant it in early spring."))
        recording.run(desktop, "thicket put notes plan '%s'" % (NOTE % "Plant it in spring, near the pond."))
        merged = "Plant it in early spring, near the pond."
        for device in (laptop, desktop):
            if merged not in recording.run(device, "thicket get notes plan --path text"):
                raise SystemExit(f"record: the two edits did not merge on the {device.name}")
        watched = recording.start(laptop, "thicket watch notes")
        recording.wait(watched, "connected")
        recording.run(desktop, "thicket put notes plan '%s'" % (NOTE % (merged[:-1] + ". Water it.")))
        recording.wait(watched, "Water")
        recording.run(server, 'sqlite3 data/thicket.db "SELECT k, substr(diff, 1, 240) FROM chg ORDER BY gid LIMIT 2"')
        found = recording.run(server, "cat data/thicket.db* | strings | grep -c -e Plant -e spring -e pond", code=1)
        if found.strip() != "0":
            raise SystemExit("record: the server's files hold words of the note")
    finally:
        recording.stop()
    return laptop, desktop, server


def drawn(panes):
    """The SVG. Lines appear once, in their order; where nothing moves, all of them are there."""
    laptop, desktop, server = panes
    half = HALF * CHARACTER + 2 * EDGE
    width = 2 * half + GAP
    heights = [(rows + 1.9) * ROW + EDGE for rows in (ROWS_ABOVE, ROWS_BELOW)]
    places = [(laptop, 0, 0, half, heights[0]), (desktop, half + GAP, 0, half, heights[0])]
    places.append((server, 0, heights[0] + GAP, width, heights[1]))
    height = heights[0] + GAP + heights[1]
    seconds = sorted({line[1] for pane in panes for line in pane.lines})
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        "<title>Two devices edit one note; the server keeps it and cannot read it</title>",
        "<style>text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}"
        ".p{fill:#161b22;stroke:#30363d}.n{fill:#8b949e}.c{fill:#7ee787}.o{fill:#e6edf3}"
        "@keyframes s{from{opacity:0}to{opacity:1}}g g{animation:s .3s both}",
        "".join(f".s{place}{{animation-delay:{second:.1f}s!important}}" for place, second in enumerate(seconds)),
        "@media (prefers-reduced-motion:reduce){g g{animation:none!important}}</style>",
    ]
    for pane, left, top, wide, high in places:
        rows = ROWS_BELOW if pane is server else ROWS_ABOVE
        if len(pane.lines) > rows:
            raise SystemExit(f"record: {pane.name} has {len(pane.lines)} lines, and room for {rows}")
        box = f'x="{left + .5:.1f}" y="{top + .5:.1f}" width="{wide - 1:.1f}" height="{high - 1:.1f}"'
        out.append(f'<g><rect class="p" {box} rx="6"/>')
        out.append(f'<text class="n" x="{left + EDGE:.1f}" y="{top + ROW + 3:.1f}">{pane.name}</text>')
        for row, (text, second, kind) in enumerate(pane.lines):
            y = top + (row + 2.4) * ROW
            out.append(
                f'<g class="s{seconds.index(second)}"><text class="{kind}" x="{left + EDGE:.1f}" y="{y:.1f}" '
                f'textLength="{max(len(text), 1) * CHARACTER:.1f}">{escape(text, quote=False)}</text></g>'
            )
        out.append("</g>")
    return "\n".join(out + ["</svg>", ""])


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    for program in ("sqlite3", "strings"):
        if not shutil.which(program):
            raise SystemExit(f"record: {program} is missing: apt-get install sqlite3 binutils")
    programs, path = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        picture = drawn(record(programs, folder))
    with open(path, "w", encoding="utf-8") as file:
        file.write(picture)
    print(f"{path}: {len(picture.encode())} bytes")


main()
