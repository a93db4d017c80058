"""Sealed buckets a second time: rules, log, chain, snapshots and sealing, written from the published rules and decision
page 0042, sharing nothing with the Swift code.

usage: sealed_model.py make SEED COUNT     writes COUNT random logs, one a line
       sealed_model.py check               reads such lines, says of each whether it agrees
       sealed_model.py vectors SEED COUNT  the same logs as a file for tests, with the keys and clear forms in between

Needs the module `cryptography` (./dev setup --tests).
"""
import base64
import hashlib
import hmac
import json
import random
import struct
import sys
from decimal import Context, Decimal, Inexact

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

sys.setrecursionlimit(10_000)
WINDOW = 64
DEPTH = 256
DIGITS = 1024


class Misfit(Exception):
    """An edit that opens and does not fit."""


class Malformed(Exception):
    """No operation at all."""


class UnknownRules(Exception):
    """`t` names other rules."""


# --- JSON: numbers by decimal value, keys once, whole characters only -------------------------------------------------

class Num:
    def __init__(self, text):
        self.text = text
        self.value = Decimal(text)

    def __eq__(self, other):
        return isinstance(other, Num) and self.value == other.value

    def __hash__(self):
        return hash(self.value)

    def __repr__(self):
        return self.text

    def plus(self, other):
        """The exact sum; a misfit when its columns are more than a sum may have."""
        if self.value == 0 or other.value == 0:
            return other if self.value == 0 else self
        low = min(self.value.normalize().as_tuple().exponent, other.value.normalize().as_tuple().exponent)
        high = max(self.value.adjusted(), other.value.adjusted()) + 1
        if high - low >= DIGITS:
            raise Misfit("number too long")
        total = Context(prec=2 * DIGITS, traps=[Inexact]).add(self.value, other.value)
        return Num(format(total, "f")) if total == total.to_integral_value() else Num(str(total))


def once(pairs):
    result = {}
    for key, value in pairs:
        if key in result:
            raise ValueError("a key twice")
        result[key] = value
    return result


def no_constant(name):
    raise ValueError(name)


def parse(text):
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    value = json.loads(text, parse_int=Num, parse_float=Num, parse_constant=no_constant, object_pairs_hook=once)
    whole(value)
    return value


def whole(value):
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, list):
        for element in value:
            whole(element)
    elif isinstance(value, dict):
        for key, element in value.items():
            key.encode("utf-8")
            whole(element)


def dump(value):
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Num):
        return value.text
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    return "{" + ",".join(dump(k) + ":" + dump(v) for k, v in value.items()) + "}"


def whole_number(value):
    if isinstance(value, Num) and value.value == value.value.to_integral_value():
        return int(value.value)
    raise Malformed("no number")


def levels(value):
    if isinstance(value, list):
        return 1 + max(map(levels, value), default=0)
    if isinstance(value, dict):
        return 1 + max(map(levels, value.values()), default=0)
    return 0


# --- texts: deltas over UTF-16 units ----------------------------------------------------------------------------------

PLAIN = set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789;,/?:@&=+$-_.!~*'()# ")


def units(text):
    data = text.encode("utf-16-le", "surrogatepass")
    return list(struct.unpack(f"<{len(data) // 2}H", data))


def string(list_of_units):
    return struct.pack(f"<{len(list_of_units)}H", *list_of_units).decode("utf-16-le")


def high(unit):
    return 0xD800 <= unit < 0xDC00


def low(unit):
    return 0xDC00 <= unit < 0xE000


class Delta:
    """Steps ["=", n], ["-", n], ["+", units]; ["-", 0] only before an insertion: deleted text stood on its left."""

    def __init__(self):
        self.steps = []

    def count(self, kind, n):
        if n <= 0:
            return
        if self.steps and self.steps[-1][0] == kind:
            self.steps[-1][1] += n
        else:
            self.steps.append([kind, n])

    def keep(self, n):
        self.count("=", n)

    def delete(self, n):
        self.count("-", n)

    def insert(self, what, gone=False):
        if not what:
            return
        last = self.steps[-1] if self.steps else None
        marked = len(self.steps) > 1 and self.steps[-2] == ["-", 0]
        if last and last[0] == "+" and (marked or not gone):
            last[1] = last[1] + list(what)
            return
        if gone:
            self.steps.append(["-", 0])
        self.steps.append(["+", list(what)])

    def length(self):
        return sum(step[1] for step in self.steps if step[0] != "+")

    def idle(self):
        return all(step[0] == "=" for step in self.steps)

    @staticmethod
    def parse(text):
        delta, gone = Delta(), False
        for token in text.encode("utf-8").split(b"\t"):
            if not token:
                continue
            kind, body = token[:1], token[1:]
            if kind == b"+":
                delta.insert(unescape(body), gone)
                gone = False
                continue
            if kind not in b"=-" or not body.isdigit() or int(body) > 1 << 40:
                raise Misfit("delta")
            n = int(body)
            if kind == b"=":
                delta.keep(n)
                gone = False
            else:
                delta.delete(n)
                gone = n == 0
        return delta

    def text(self):
        return "\t".join(
            step[0] + (escape(step[1]) if step[0] == "+" else str(step[1])) for step in self.steps)

    def apply(self, text):
        source, at, out = units(text), 0, []
        if self.length() != len(source):
            raise Misfit("delta for a text of another length")
        for kind, value in self.steps:
            if kind == "+":
                try:
                    string(value)
                except UnicodeDecodeError:
                    raise Misfit("half a pair") from None
                out += value
                continue
            if kind == "=":
                out += source[at:at + value]
            at += value
            if 0 < at < len(source) and high(source[at - 1]) and low(source[at]):
                raise Misfit("a pair is cut")
        return string(out)


def escape(list_of_units):
    data = struct.pack(f"<{len(list_of_units)}H", *list_of_units).decode("utf-16-le", "surrogatepass")
    return "".join(
        chr(byte) if byte in PLAIN else f"%{byte:02X}" for byte in data.encode("utf-8", "surrogatepass"))


def unescape(body):
    out, at = bytearray(), 0
    while at < len(body):
        if body[at:at + 1] == b"%":
            digits = body[at + 1:at + 3]
            if len(digits) < 2 or any(digit not in b"0123456789abcdefABCDEF" for digit in digits):
                raise Misfit("escape")
            out.append(int(digits, 16))
            at += 3
        else:
            out.append(body[at])
            at += 1
    try:
        return units(bytes(out).decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:
        raise Misfit("escape") from None


class Reader:
    def __init__(self, delta):
        self.steps = [[kind, value if kind == "+" else int(value)] for kind, value in delta.steps]
        self.at = 0

    def step(self):
        return self.steps[self.at] if self.at < len(self.steps) else None

    def left(self):
        step = self.step()
        return step[1] if step else 0

    def use(self, n):
        self.steps[self.at][1] -= n
        if self.steps[self.at][1] == 0:
            self.at += 1

    def insertions(self, at_gone):
        """(what, rank): 0 beside text that both show, 1 behind text that the other deletes, 2 behind a gap, 3 both."""
        found, rank = [], int(at_gone)
        while self.step():
            kind, value = self.step()
            if kind == "+":
                found.append((value, rank))
            elif kind == "-" and value == 0:
                rank = 2 + int(at_gone)
            else:
                break
            self.at += 1
        return found

    def deletes(self):
        return bool(self.step()) and self.step()[0] == "-"


def carry_text(mine, theirs, first):
    if mine.length() != theirs.length():
        raise Misfit("deltas for texts of different lengths")
    a, b, out = Reader(mine), Reader(theirs), Delta()
    a_gone = b_gone = False
    while True:
        own, other = a.insertions(b_gone), b.insertions(a_gone)
        in_front = first if a.deletes() == b.deletes() else b.deletes()
        for rank in range(4):
            passed = sum(len(what) for what, r in other if r == rank)
            if not in_front:
                out.keep(passed)
            for what, r in own:
                if r == rank:
                    out.insert(what, gone=rank > 0)
            if in_front:
                out.keep(passed)
        n = min(a.left(), b.left())
        if n == 0:
            return out
        a_gone, b_gone = a.deletes(), b.deletes()
        if not b_gone:
            out.delete(n) if a_gone else out.keep(n)
        a.use(n)
        b.use(n)


# --- edits ------------------------------------------------------------------------------------------------------------

NOTHING = object()


class Edit:
    """set, del, inc, obj ({key: Edit}), list (steps), text (Delta)."""

    def __init__(self, kind, value=None, old=NOTHING, contested=False):
        self.kind, self.value, self.old, self.contested = kind, value, old, contested

    def holds_text(self):
        if self.kind == "text":
            return True
        if self.kind == "obj":
            return any(edit.holds_text() for edit in self.value.values())
        return self.kind == "list" and any(s[0] == "edit" and s[1].holds_text() for s in self.value)

    def hollow(self):
        """Whether nothing would happen, whatever the value."""
        if self.kind == "obj":
            return all(edit.hollow() for edit in self.value.values())
        if self.kind == "list":
            return all(s[0] == "keep" or s[0] == "edit" and s[1].hollow() for s in self.value)
        return self.kind == "text" and self.value.idle()


def read_edit(json_value):
    """A jsondiff operation."""
    if not isinstance(json_value, dict) or not isinstance(json_value.get("o"), str):
        raise Misfit("no operation")
    name = json_value["o"]
    if name == "-":
        return Edit("del")
    if "v" not in json_value:
        if name == "O":
            return Edit("obj", {})
        raise Misfit("no value")
    value = json_value["v"]
    if name in ("+", "r"):
        return Edit("set", value)
    if name == "I" and isinstance(value, Num):
        return Edit("inc", value)
    if name == "O" and isinstance(value, dict):
        return Edit("obj", {key: read_edit(entry) for key, entry in value.items()})
    if name == "d" and isinstance(value, str):
        return Edit("text", Delta.parse(value))
    if name == "L" and isinstance(value, dict):
        return Edit("list", read_steps(value, read_edit))
    raise Misfit("unknown operation")


def read_steps(value, read):
    steps, at = [], 0
    for index in sorted(map(list_index, value)):
        if index > at:
            steps.append(("keep", index - at))
        entry = value[str(index)]
        edit = read(entry)
        if edit.kind == "set" and entry["o"] == "+":
            steps.append(("ins", edit.value, False))
        elif edit.kind == "del":
            steps.append(("del", edit.old, False))
        else:
            steps.append(("edit", edit))
        at = index + 1
    return steps


def list_index(text):
    if not text.isascii() or not text.isdigit() or len(text) > 9 or (len(text) > 1 and text[0] == "0"):
        raise Misfit("index")
    return int(text)


def settled_form(edit):
    """As it stands in a snapshot, with what it replaced and removed."""
    out = {"o": {"set": "r", "del": "-", "inc": "I", "obj": "O", "list": "L", "text": "d"}[edit.kind]}
    if edit.kind == "set" and edit.old is NOTHING:
        out["o"] = "+"
    if edit.kind in ("set", "inc"):
        out["v"] = edit.value
    elif edit.kind == "obj":
        out["v"] = {key: settled_form(entry) for key, entry in edit.value.items()}
    elif edit.kind == "text":
        out["v"] = edit.value.text()
    elif edit.kind == "list":
        out["v"], at = {}, 0
        for step in edit.value:
            if step[0] == "keep":
                at += step[1]
                continue
            out["v"][str(at)] = (
                {"o": "+", "v": step[1]} if step[0] == "ins"
                else settled_form(Edit("del", old=step[1]) if step[0] == "del" else step[1]))
            at += 1
    if edit.old is not NOTHING:
        out["w"] = edit.old
    return out


def read_settled(json_value):
    name = json_value["o"]
    if name == "O":
        return Edit("obj", {key: read_settled(entry) for key, entry in json_value["v"].items()})
    if name == "L":
        return Edit("list", read_steps(json_value["v"], read_settled))
    edit = read_edit(json_value)
    edit.old = json_value.get("w", NOTHING)
    return edit


class Outcome:
    def __init__(self):
        self.conflicts = []

    def conflict(self, path, losing, winning):
        if losing is NOTHING and winning is NOTHING or losing is not NOTHING and winning is not NOTHING and (
                equal(losing, winning)):
            return
        self.conflicts.append([list(path), losing, winning])


def equal(a, b):
    """By value; True is not 1."""
    return type(a) is type(b) and (
        a == b if not isinstance(a, (list, dict))
        else len(a) == len(b) and all(map(equal, a, b)) if isinstance(a, list)
        else a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a))


def apply(edit, value, path=(), outcome=None):
    """The value afterwards and the edit with what it replaced; (value, None) when nothing happens."""
    outcome = outcome or Outcome()
    if edit.kind == "set":
        if levels(edit.value) > DEPTH - len(path):
            raise Misfit("too deep")
        if edit.contested:
            outcome.conflict(path, value, edit.value)
        return edit.value, Edit("set", edit.value, value)
    if edit.kind == "del":
        if value is NOTHING:
            return NOTHING, None
        if edit.contested:
            outcome.conflict(path, value, NOTHING)
        return NOTHING, Edit("del", old=value)
    if edit.kind == "inc" and isinstance(value, Num):
        return value.plus(edit.value), edit
    if edit.kind == "text" and isinstance(value, str):
        return edit.value.apply(value), None if edit.value.idle() else edit
    if edit.kind == "obj" and isinstance(value, dict):
        result, done = dict(value), {}
        for key, entry in edit.value.items():
            after, settled = apply(entry, value.get(key, NOTHING), (*path, key), outcome)
            if settled is None:
                continue
            done[key] = settled
            if after is NOTHING:
                result.pop(key, None)
            else:
                result[key] = after
        return result, Edit("obj", done) if done else None
    if edit.kind == "list" and isinstance(value, list):
        return apply_list(edit.value, value, path, outcome)
    raise Misfit("wrong type, or nothing there")


def apply_list(steps, value, path, outcome):
    result, done, at = [], [], 0
    for step in steps:
        here = (*path, str(len(result)))
        if step[0] == "ins":
            if levels(step[1]) > DEPTH - len(here):
                raise Misfit("too deep")
            if step[2]:
                outcome.conflict(here, NOTHING, step[1])
            result.append(step[1])
            done.append(("ins", step[1], False))
            continue
        n = step[1] if step[0] == "keep" else 1
        if at + n > len(value):
            raise Misfit("behind the end")
        if step[0] == "keep":
            result += value[at:at + n]
            done.append(step)
        elif step[0] == "del":
            if step[2]:
                outcome.conflict(here, value[at], NOTHING)
            done.append(("del", value[at], False))
        else:
            after, settled = apply(step[1], value[at], here, outcome)
            if after is not NOTHING:
                result.append(after)
            done.append(("edit", settled) if settled else ("keep", 1))
        at += n
    result += value[at:]
    done = joined(done)
    return result, Edit("list", done) if done else None


def joined(steps):
    """Neighbouring `keep` as one, none at the end."""
    out = []
    for step in steps:
        if step[0] == "keep" and out and out[-1][0] == "keep":
            out[-1] = ("keep", out[-1][1] + step[1])
        else:
            out.append(step)
    if out and out[-1][0] == "keep":
        out.pop()
    return out


def carry(mine, theirs, first):
    """`mine` over `theirs`, which was ordered earlier and applied; None when nothing is left."""
    if mine.kind == "set" and theirs.kind == "set":
        return None if equal(mine.value, theirs.value) else Edit("set", mine.value, contested=True)
    if mine.kind == "del":
        return None if theirs.kind == "del" else Edit("del", contested=True)
    if theirs.kind == "del":
        if mine.kind == "set":
            return Edit("set", mine.value, contested=theirs.old is not NOTHING)
        return Edit("set", apply(mine, theirs.old)[0], contested=True)
    if mine.kind == "set":
        return Edit("set", mine.value, contested=True)
    if theirs.kind == "set":
        if not mine.holds_text():
            try:
                apply(mine, theirs.value)
                return mine
            except Misfit:
                pass
        return Edit("set", apply(mine, theirs.old)[0], contested=True)
    if mine.kind != theirs.kind:
        raise Misfit("two types")
    if mine.kind == "inc":
        return mine
    if mine.kind == "text":
        delta = carry_text(mine.value, theirs.value, first)
        return None if delta.idle() else Edit("text", delta)
    if mine.kind == "list":
        moved = Edit("list", carry_list(mine.value, theirs.value, first))
        return None if moved.hollow() else moved
    out = {}
    for key, entry in mine.value.items():
        moved = carry(entry, theirs.value[key], first) if key in theirs.value else entry
        if moved:
            out[key] = moved
    return Edit("obj", out) if out else None


def flat(steps):
    """Insertions in front of each element, and what happens to it."""
    before, rows = [], []
    for step in steps:
        if step[0] == "ins":
            before.append(step)
        else:
            for _ in range(step[1] if step[0] == "keep" else 1):
                rows.append((before, ("keep", 1) if step[0] == "keep" else step))
                before = []
    return rows, before


def carry_list(mine, theirs, first):
    a, a_end = flat(mine)
    b, b_end = flat(theirs)
    size, out = max(len(a), len(b)), []
    # Behind the shorter one everything is kept; its last insertions stand in front of the next element.
    def row(rows, end, at):
        if at < len(rows):
            return rows[at]
        return (end if at == len(rows) else []), ("keep", 1)

    for at in range(size + 1):
        own, step = row(a, a_end, at)
        other, done = row(b, b_end, at)
        if first:
            out += own
        if other:
            out.append(("keep", len(other)))
        if not first:
            out += own
        if at == size:
            break
        if done[0] == "del":
            if step[0] == "edit":
                out.append(("ins", apply(step[1], done[1])[0], True))
        elif step[0] == "del":
            out.append(("del", NOTHING, step[2] or done[0] == "edit"))
        elif step[0] == "edit" and done[0] == "edit":
            moved = carry(step[1], done[1], first)
            out.append(("edit", moved) if moved else ("keep", 1))
        else:
            out.append(step)
    return joined(out)


# --- keys and sealing -------------------------------------------------------------------------------------------------

def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if b64(data) != text:
        raise Malformed("base64url")
    return data


def lp(text):
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    return struct.pack(">H", len(data)) + data


def hkdf(secret, info):
    return HKDF(hashes.SHA256(), 32, b"", info).derive(secret)


def pad_size(kind, n):
    if kind == 2:
        return -(-n // 64) * 64
    if n < 2:
        return n
    exponent = n.bit_length() - 1
    zeros = max(0, exponent - exponent.bit_length())
    return -(-n // (1 << zeros)) * (1 << zeros)


class Keys:
    def __init__(self, case):
        self.case = case
        self.secret = {
            epoch: hkdf(bytes.fromhex(case["vault"]), b"thicket/bucket/1\0" + lp(case["app"]) + lp(case["bucket"])
                        + struct.pack(">I", epoch))
            for epoch in range(case["epochs"])}
        name = hkdf(self.secret[0], b"thicket/bucket-key/1\0name")
        tag = hmac.new(name, case["key"].encode("utf-8"), hashlib.sha256).digest()[:20]
        self.server_key = base64.b32encode(tag).decode().lower()
        self.place = lp(case["owner"]) + lp(case["app"]) + lp(case["bucket"]) + lp(self.server_key)
        self.object = {
            epoch: hkdf(hkdf(secret, b"thicket/bucket-key/1\0seal"),
                        b"thicket/sealed-object/1\0" + lp(self.server_key))
            for epoch, secret in self.secret.items()}

    def data(self, header, n):
        return b"thicket/sealed/1\0" + header + self.place + struct.pack(">Q", n)

    def seal(self, clear, kind, ident, n, nonce, epoch):
        header = bytes([1, kind]) + struct.pack(">I", epoch) + ident
        text = struct.pack(">I", len(clear)) + clear
        text += bytes(pad_size(kind, len(text)) - len(text))
        return header + nonce + AESGCM(self.object[epoch]).encrypt(nonce, text, self.data(header, n))

    def open(self, sealed, kind, n):
        """None when anything is wrong."""
        if len(sealed) < 50 or sealed[0] != 1 or sealed[1] != kind:
            return None
        epoch = struct.unpack(">I", sealed[2:6])[0]
        if epoch not in self.object:
            return None
        try:
            text = AESGCM(self.object[epoch]).decrypt(sealed[22:34], sealed[34:], self.data(sealed[:22], n))
        except InvalidTag:
            return None
        size = struct.unpack(">I", text[:4])[0] if len(text) >= 4 else len(text)
        if 4 + size > len(text) or pad_size(kind, 4 + size) != len(text) or any(text[4 + size:]):
            return None
        return text[4:4 + size]


# --- the log ----------------------------------------------------------------------------------------------------------

class Log:
    def __init__(self, keys, incarnation, value):
        self.keys, self.incarnation, self.object = keys, incarnation, value
        self.position = 0
        self.newest = hashlib.sha256(b"thicket/chain/1\0" + keys.place + incarnation).digest()
        self.heads = {0: self.newest[:16]}
        self.last = {}
        self.window = []

    def kept(self):
        first = max(0, self.position - WINDOW + 1)
        recent = list(range(first, self.position + 1))
        return list(range(0, first, WINDOW))[-WINDOW:], recent

    def take(self, sealed, author=None, settled=None):
        self.newest = hashlib.sha256(self.newest + sealed).digest()
        self.position += 1
        self.heads[self.position] = self.newest[:16]
        old, recent = self.kept()
        self.heads = {at: self.heads[at] for at in old + recent}
        if author is not None:
            self.last[author] = self.position
        self.window = (self.window + [(author, settled) if settled else None])[-WINDOW:]

    def append(self, sealed):
        """What became of it, and conflicts."""
        clear = self.keys.open(sealed, 2, 0)
        if clear is None:
            self.take(sealed)
            return "void doesNotOpen", []
        try:
            base, head, tag, author, edit = read_operation(clear)
        except Malformed:
            self.take(sealed)
            return "void malformed", []
        except UnknownRules:
            return "unknownRules", []
        if tag != self.incarnation[:8]:
            self.take(sealed)
            return "void otherIncarnation", []
        if base > self.position:
            return f"forked {self.position + 1}", []
        if base in self.heads and self.heads[base] != head:
            return f"forked {base}", []
        if base < self.last.get(author, 0):
            self.take(sealed)
            return "void behindAuthor", []
        if self.position + 1 - base > WINDOW:
            self.take(sealed)
            return "void tooOld", []
        outcome = Outcome()
        try:
            if edit is None:
                raise Misfit("unreadable")
            for entry in self.window[len(self.window) - (self.position - base):]:
                if entry and edit:
                    edit = carry(edit, entry[1], author < entry[0])
            after, settled = apply(edit, self.object, (), outcome) if edit else (self.object, None)
        except Misfit:
            self.take(sealed, author)
            return "misfit", []
        self.take(sealed, author, settled)
        self.object = after
        return "applied", outcome.conflicts

    def snapshot(self):
        old, recent = self.kept()
        return dump({
            "k": self.keys.case["key"], "i": b64(self.incarnation), "n": self.position,
            "o": None if self.object is NOTHING else self.object, "h": b64(self.newest),
            "r": b64(b"".join(self.heads[at] for at in recent)), "q": b64(b"".join(self.heads[at] for at in old)),
            "a": {b64(author): at for author, at in sorted(self.last.items())},
            "w": [entry and {"a": b64(entry[0]), "x": settled_form(entry[1])} for entry in self.window],
        }).encode("utf-8")

    @staticmethod
    def restore(keys, clear):
        root = parse(clear)
        log = Log(keys, unb64(root["i"]), NOTHING if root["o"] is None else root["o"])
        log.position, log.newest = whole_number(root["n"]), unb64(root["h"])
        old, recent = log.kept()
        heads = unb64(root["q"]) + unb64(root["r"])
        log.heads = {at: heads[16 * i:16 * i + 16] for i, at in enumerate(old + recent)}
        log.last = {unb64(author): whole_number(at) for author, at in root["a"].items()}
        log.window = [entry and (unb64(entry["a"]), read_settled(entry["x"])) for entry in root["w"]]
        assert root["k"] == keys.case["key"] and len(log.window) == min(WINDOW, log.position)
        assert len(heads) == 16 * len(old + recent)
        return log

    def state(self):
        """All of it, comparable by value."""
        return parse(self.snapshot())


def read_operation(clear):
    try:
        root = parse(clear)
    except (ValueError, RecursionError):
        raise Malformed("JSON") from None
    if not isinstance(root, dict):
        raise Malformed("no object")
    if "t" in root and root["t"] != Num("1"):
        raise UnknownRules
    try:
        base, head, tag, author = (
            whole_number(root["b"]), unb64(root["h"]), unb64(root["n"]), unb64(root["a"]))
        content = root["x"]
    except (KeyError, TypeError, ValueError):
        raise Malformed("member") from None
    if base < 0 or len(head) != 16 or len(tag) != 8 or len(author) != 8:
        raise Malformed("member")
    if content == "-":
        return base, head, tag, author, Edit("del")
    if not isinstance(content, dict):
        raise Malformed("x")
    try:
        return base, head, tag, author, Edit("obj", {key: read_edit(entry) for key, entry in content.items()})
    except Misfit:
        return base, head, tag, author, None


# --- the object as the server holds it, and the changes that lead there -----------------------------------------------

class Held:
    """`{"z","s","d"}`, as the changes of devices make it: `sv` counts the changes that the author of one had seen."""

    def __init__(self):
        self.states = [None]

    @property
    def object(self):
        return self.states[-1]

    @staticmethod
    def newest(state):
        return max(map(int, state["s"]))

    @staticmethod
    def position(state):
        return Held.newest(state) + len(state["d"])

    @staticmethod
    def creation(snapshot):
        return {"z": {"o": "+", "v": Num("1")}, "s": {"o": "+", "v": {"0": snapshot}}, "d": {"o": "+", "v": []}}

    @staticmethod
    def insertion(operation):
        return {"d": {"o": "L", "v": {"0": {"o": "+", "v": operation}}}}

    def compaction(self, sv, n, snapshot):
        """Adds the snapshot, removes the older ones that are known, and what it covers from the end of the tail."""
        state = self.states[sv]
        length, covered = len(state["d"]), n - Held.newest(state)
        named = {str(n): {"o": "+", "v": snapshot}}
        named.update({key: {"o": "-"} for key in sorted(state["s"], key=int)})
        return {"s": {"o": "O", "v": named},
                "d": {"o": "L", "v": {str(at): {"o": "-"} for at in range(length - covered, length)}}}

    def take(self, sv, v):
        """Orders a change: insertions at 0 as they come, a compaction carried over what came since its author looked."""
        if self.object is None:
            self.states.append({"z": Num("1"), "s": dict(v["s"]["v"]), "d": []})
            return
        state = {"z": Num("1"), "s": dict(self.object["s"]), "d": list(self.object["d"])}
        if "s" not in v:
            state["d"].insert(0, v["d"]["v"]["0"]["v"])
        else:
            before = self.states[sv]
            gone = {Held.position(before) - int(at) for at in v["d"]["v"]}
            place = Held.position(state)
            state["d"] = [text for at, text in enumerate(state["d"]) if place - at not in gone]
            for key, change in v["s"]["v"].items():
                if change["o"] == "+":
                    state["s"][key] = change["v"]
                else:
                    state["s"].pop(key, None)
        self.states.append(state)


def read_object(keys, held):
    """The log that an object gives: the largest snapshot, then the tail from its end."""
    n = Held.newest(held)
    log = Log.restore(keys, keys.open(unb64(held["s"][str(n)]), 1, n))
    for text in reversed(held["d"]):
        if log.append(unb64(text))[0].split()[0] in ("forked", "unknownRules"):
            break
    return log


def heads_entry(log):
    """What the object `heads` says of a log."""
    return {log.keys.server_key: [b64(log.incarnation[:8]), Num(str(log.position)), b64(log.newest[:16])]}


def check_changes(keys, case, snapshots):
    """Whether the changes are those of the rules and make the object, and this gives the log."""
    held, operations = Held(), list(case["operations"])
    log = Log.restore(keys, keys.open(snapshots[0], 1, 0))
    clear = {0: log.state()}
    for number, change in enumerate(case["changes"]):
        sv, v = whole_number(change["sv"]), change["v"]
        if number == 0:
            wanted = Held.creation(case["snapshots"]["0"])
        elif "s" in v:
            (n, text), = ((key, entry["v"]) for key, entry in v["s"]["v"].items() if entry["o"] == "+")
            opened = keys.open(unb64(text), 1, int(n))
            if opened is None or not equal(parse(opened), clear[int(n)]):
                return f"change {number}: another snapshot"
            if int(n) <= Held.newest(held.object):
                return f"change {number}: it covers nothing new"
            wanted = held.compaction(sv, int(n), text)
        else:
            operation = operations.pop(0)
            wanted = Held.insertion(operation)
            log.append(unb64(operation))
            clear[log.position] = log.state()
        if not equal(v, wanted):
            return f"change {number}: {dump(v)[:300]} and not {dump(wanted)[:300]}"
        held.take(sv, v)
    if operations or not equal(held.object, case["object"]):
        return f"object: {dump(held.object)[:300]} and not {dump(case['object'])[:300]}"
    if not equal(read_object(keys, held.object).state(), case["state"]):
        return "the object gives another log"
    if not equal(heads_entry(log), case["heads"]):
        return "heads"
    return None


# --- random logs ------------------------------------------------------------------------------------------------------

TEXTS = ["", "a", "the quick brown fox", "é", "e\u0301", "🌲🌳", "a🌲b", "x\ty%", "日本", "\"\\\n\u0007"]
KEYS = ["t", "n", "l", "o", "k", "é", "e\u0301", "", "🌲", "10"]


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def bytes(self, n):
        return self.random.randbytes(n)

    def value(self, depth=0):
        r = self.random
        kind = r.randrange(4 if depth > 2 else 6)
        if kind == 0:
            return Num(r.choice(["0", "1", "-7", "1.50", "2e3", "12345678901234567890", "0.1", "-0"]))
        if kind == 1:
            return r.choice(TEXTS)
        if kind == 2:
            return None
        if kind == 3:
            return r.random() < 0.5
        if kind == 4:
            return [self.value(depth + 1) for _ in range(r.randrange(4))]
        return {key: self.value(depth + 1) for key in r.sample(KEYS, r.randrange(4))}

    def delta(self, text):
        r, at, out, source = self.random, 0, Delta(), list(text)
        for _ in range(r.randrange(1, 4)):
            n = r.randrange(len(source) - at + 1)
            out.keep(len(units("".join(source[at:at + n]))))
            at += n
            n = min(r.choice([0, 0, 1, 2, 5]), len(source) - at)
            typed = units(r.choice(TEXTS)) if r.random() < 0.7 else []
            if r.random() < 0.5:
                out.insert(typed, gone=r.random() < 0.1)
                typed = []
            out.delete(len(units("".join(source[at:at + n]))))
            out.insert(typed, gone=r.random() < 0.1)
            at += n
        out.keep(len(units("".join(source[at:]))))
        return out.text()

    def operation(self, value, depth):
        r = self.random
        if r.random() < 0.1:
            return {"o": "-"}
        if r.random() < 0.12 or value is None or isinstance(value, bool):
            return {"o": "r", "v": self.value(depth)}
        if isinstance(value, Num):
            return {"o": "I", "v": Num(r.choice(["1", "-3", "0.25", "1e2"]))}
        if isinstance(value, str):
            return {"o": "d", "v": self.delta(value)}
        if isinstance(value, dict):
            return {"o": "O", "v": self.diff(value, depth + 1)}
        return {"o": "L", "v": self.list_diff(value, depth + 1)}

    def diff(self, value, depth=0):
        r, out = self.random, {}
        for key, entry in value.items():
            if r.random() < 0.35:
                out[key] = self.operation(entry, depth)
        new = r.choice(KEYS)
        if new not in value and r.random() < 0.4:
            out[new] = {"o": "+", "v": self.value(depth + 1)}
        return out

    def list_diff(self, value, depth):
        r, out, at = self.random, {}, 0
        for entry in value:
            if r.random() < 0.25:
                out[str(at)] = {"o": "+", "v": self.value(depth)}
                at += 1
            if r.random() < 0.4:
                out[str(at)] = self.operation(entry, depth)
            at += 1
        if r.random() < 0.4:
            out[str(at)] = {"o": "+", "v": self.value(depth)}
        shuffled = list(out.items())
        r.shuffle(shuffled)
        return dict(shuffled)

    def broken(self):
        """Edits that do not fit, or cannot be read."""
        return self.random.choice([
            {"t": {"o": "d", "v": "=9999"}}, {"t": {"o": "dL", "v": "=1"}}, {"t": {"o": "q", "v": 1}},
            {"missing": {"o": "I", "v": 1}}, {"t": {"o": "L", "v": {"01": {"o": "-"}}}}, {"t": 7},
            {"o": {"o": "O"}}, {"t": {"o": "d", "v": "+%zz"}}, {"l": {"o": "L", "v": {"999": {"o": "-"}}}},
            {"n": {"o": "I", "v": Num("1e5000")}}, {"t": {"o": "r"}}, {"t": {"o": "d", "v": "+%ED%A0%BD"}},
        ])

    def case(self, steps):
        """A log: authors who know different amounts of it write, everything in the order of the server."""
        r = self.random
        case = {"vault": self.bytes(32).hex(), "owner": "ann@example.com", "app": "notes", "bucket": "b",
                "key": r.choice(["note-1", "é", "🌲 " + str(r.randrange(100))]), "epochs": r.choice([1, 1, 2])}
        keys = Keys(case)
        start = {"t": r.choice(TEXTS), "n": Num("1"), "l": [Num("1"), "x", {"y": "abc"}], "o": {"s": "hello"}}
        log = Log(keys, self.bytes(16), start)
        case["server_key"] = keys.server_key
        case["snapshots"] = {"0": self.seal(keys, log.snapshot(), 1, 0)}
        case["operations"], case["verdicts"], case["conflicts"] = [], [], []
        states, heads, authors, lag = [log.object], [log.heads[0]], [self.bytes(8) for _ in range(r.randrange(2, 6))], (
            r.choice([3, 12, 70]))
        while log.position < steps:
            author = r.choice(authors)
            base = max(log.last.get(author, 0), log.position - r.randrange(lag))
            text = self.clear(log, states, heads, author, base)
            sealed = unb64(self.seal(keys, text, 2, 0))
            odd = r.random()
            if odd < 0.01:
                sealed = sealed[:-1] + bytes([sealed[-1] ^ 1])
            elif odd < 0.03 and case["operations"]:
                sealed = unb64(r.choice(case["operations"]))
            verdict, conflicts = log.append(sealed)
            case["operations"].append(b64(sealed))
            case["verdicts"].append(verdict)
            case["conflicts"] += [[log.position, path, said(losing), said(winning)]
                                  for path, losing, winning in conflicts]
            if verdict.startswith("forked") or verdict == "unknownRules":
                break
            states.append(log.object)
            heads.append(log.heads[log.position])
            if r.random() < 0.03:
                case["snapshots"][str(log.position)] = self.seal(keys, log.snapshot(), 1, log.position)
        case["state"] = parse(log.snapshot())
        self.send(keys, case)
        return case

    def send(self, keys, case):
        """The same as changes, and the object that they make: some of its devices do not know the newest."""
        r, held = self.random, Held()
        log = Log.restore(keys, keys.open(unb64(case["snapshots"]["0"]), 1, 0))
        case["changes"], clear = [], {0: log.snapshot()}

        def sent(sv, v):
            case["changes"].append({"sv": Num(str(sv)), "v": v})
            held.take(sv, v)

        sent(0, Held.creation(case["snapshots"]["0"]))
        for text in case["operations"]:
            sent(r.randrange(max(1, len(held.states) - 3), len(held.states)), Held.insertion(text))
            log.append(unb64(text))
            clear[log.position] = log.snapshot()
            for _ in range(r.choice([0, 0, 0, 0, 0, 0, 1, 2])):
                sv = r.randrange(max(1, len(held.states) - 6), len(held.states))
                n = Held.position(held.states[sv])
                # One that covers no more than what is there is refused, and what is not taken is in no snapshot.
                if n > Held.newest(held.object) and n in clear:
                    sent(sv, held.compaction(sv, n, self.seal(keys, clear[n], 1, n)))
        case["object"], case["heads"] = held.object, heads_entry(log)

    def clear(self, log, states, heads, author, base):
        r = self.random
        state = states[base]
        content = "-" if state is NOTHING else self.diff(state)
        if r.random() < 0.02:
            content = self.broken()
        elif r.random() < 0.004:
            content = "-"
        root = {"b": base, "h": b64(heads[base]), "n": b64(log.incarnation[:8]), "a": b64(author), "x": content}
        odd = r.random()
        if odd < 0.01:
            root["n"] = b64(self.bytes(8))
        elif odd < 0.02:
            root[r.choice("bhnax")] = r.choice([None, True, "", [], Num("-1"), Num("1.5"), "AA"])
        elif odd < 0.03:
            root["t"] = Num("1.0")
        elif odd < 0.032:
            root["t"] = r.choice([Num("2"), "1", None])
        elif odd < 0.034:
            root["b"] = log.position + 1
        elif odd < 0.036:
            root["h"] = b64(self.bytes(16))
        elif odd < 0.05:
            root["later"] = {"member": [1]}
        return dump(root).encode("utf-8")

    def seal(self, keys, clear, kind, n):
        epoch = self.random.randrange(keys.case["epochs"])
        return b64(keys.seal(clear, kind, self.bytes(16), n, self.bytes(12), epoch))


def said(value):
    """A value of a conflict: [] for none."""
    return [] if value is NOTHING else [value]


def check(case):
    """Whether we read the log as its writer did: from its beginning, and from every snapshot on."""
    case = dict(case, epochs=whole_number(case["epochs"]))
    keys = Keys(case)
    if keys.server_key != case["server_key"]:
        return "server key"
    snapshots = {int(n): unb64(text) for n, text in case["snapshots"].items()}
    logs, verdicts, conflicts = [Log.restore(keys, keys.open(snapshots[0], 1, 0))], [], []
    for sealed in map(unb64, case["operations"]):
        verdict, told = logs[0].append(sealed)
        verdicts.append(verdict)
        conflicts += [[Num(str(logs[0].position)), path, said(losing), said(winning)] for path, losing, winning in told]
        for log in logs[1:]:
            if log.append(sealed)[0] != verdict:
                return f"operation {len(verdicts)} from a snapshot on"
        at = len(verdicts)
        if at in snapshots and logs[0].position == at:
            clear = keys.open(snapshots[at], 1, at)
            if clear is None:
                return f"snapshot {at} does not open"
            logs.append(Log.restore(keys, clear))
            if not equal(logs[-1].state(), logs[0].state()):
                return f"snapshot {at} holds something else"
    if verdicts != case["verdicts"]:
        at = next(i for i, pair in enumerate(zip(verdicts + [""], case["verdicts"] + [""])) if pair[0] != pair[1])
        return f"operation {at + 1}: {verdicts[at:at + 1]} and not {case['verdicts'][at:at + 1]}"
    if not equal(conflicts, case["conflicts"]):
        return f"conflicts: {dump(conflicts)[:400]} and not {dump(case['conflicts'])[:400]}"
    for log in logs:
        if not equal(log.state(), case["state"]):
            return f"end: {log.snapshot()[:2000]!r} and not {dump(case['state'])[:2000]!r}"
    return check_changes(keys, case, snapshots)


def main():
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    if verb == "make":
        for number in range(int(sys.argv[3])):
            writer = Writer(int(sys.argv[2]) * 1_000_003 + number)
            print(dump(writer.case(writer.random.choice([10, 40, 150]))))
    elif verb == "check":
        for line in sys.stdin:
            problem = check(parse(line))
            print(json.dumps({"ok": problem is None, "problem": problem}))
    elif verb == "vectors":
        cases = []
        for number in range(int(sys.argv[3])):
            writer = Writer(int(sys.argv[2]) * 1_000_003 + number)
            case = writer.case(writer.random.choice([8, 20, 90]))
            keys = Keys(case)
            case["bucket_secret"] = keys.secret[0].hex()
            case["object_key"] = keys.object[0].hex()
            case["clear"] = [
                (lambda clear: None if clear is None else clear.decode("utf-8", "replace"))(keys.open(unb64(text), 2, 0))
                for text in case["operations"][:8]]
            cases.append(case)
        print("[\n" + ",\n".join(map(dump, cases)) + "\n]")
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
