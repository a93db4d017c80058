import Glibc
import ThicketProtocol

// Attacks that make the server compute: edits of very old versions, costly differences.
extension HostileAttack {
    /// Creates objects and waits until they are acknowledged.
    static func fill(_ port: UInt16, _ token: String, objects: Int, bytes: Int) throws {
        let text = String(repeating: "o", count: bytes)
        try submit(port, token, count: objects, atOnce: 48) { number in
            "0:c:{\"id\":\"o\(number)\",\"o\":\"M\",\"v\":{\"t\":{\"o\":\"+\",\"v\":\"\(text)\"}},\"ccid\":\"fill-\(number)\"}"
        }
    }

    /// Creates a text and a number of versions of it.
    static func type(_ port: UInt16, _ token: String, versions: Int, bytes: Int) throws {
        let text: String = words(bytes)
        let length: Int = text.utf16.count
        try submit(port, token, count: versions + 1, atOnce: 1) { number in
            guard number > 0 else {
                return
                    "0:c:{\"id\":\"text\",\"o\":\"M\",\"v\":{\"t\":{\"o\":\"+\",\"v\":\"\(text)\"}},\"ccid\":\"type-0\"}"
            }
            let place: Int = number * 7_919 % length
            return "0:c:{\"id\":\"text\",\"o\":\"M\",\"sv\":\(number),\"v\":{\"t\":{\"o\":\"d\",\"v\":\""
                + "=\(place)\\t+new\(number % 10)\\t=\(length - place + (number - 1) * 4)\"}},\"ccid\":\"type-\(number)\"}"
        }
    }

    /// A text of a number of bytes: words, not one letter, so that a fuzzy match has something to search.
    private static func words(_ bytes: Int) -> String {
        var text = ""
        while text.utf8.count < bytes { text += "word\(text.utf8.count * 7_919 % 99_991) " }
        return text
    }

    private static func submit(
        _ port: UInt16, _ token: String, count: Int, atOnce: Int, _ change: (Int) -> String
    ) throws {
        let socket = HostileSocket(port: port, number: 0)
        let scratch: UnsafeMutableRawBufferPointer = .allocate(byteCount: 1 << 18, alignment: 64)
        defer { scratch.deallocate() }
        guard socket.connect() else { throw BenchError("the server takes no connection before the attack") }
        var acknowledged = 0
        socket.listener = { bytes in
            guard bytes.starts(with: "0:c:".utf8) else { return }
            acknowledged += Self.occurrences(of: "\"ccids\"", in: bytes)
        }
        socket.send(hello(token, "prepare"))
        let end: UInt64 = nanoseconds() + 60_000_000_000
        var next = 0
        while acknowledged < count {
            while next < count, next - acknowledged < atOnce {
                socket.send(change(next))
                next += 1
            }
            socket.move(reads: true, scratch)
            guard socket.isOpen, nanoseconds() < end else {
                throw BenchError("\(acknowledged) of \(count) objects could be made")
            }
            // Only an outstanding answer is waited for.
            guard next == count ? acknowledged < count : next - acknowledged >= atOnce else { continue }
            var polls: [pollfd] = [pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)]
            _ = poll(&polls, 1, 100)
        }
    }

    private static func occurrences(of needle: String, in bytes: UnsafeRawBufferPointer) -> Int {
        let needle: [UInt8] = Array(needle.utf8)
        guard let start: UnsafeRawPointer = bytes.baseAddress, !needle.isEmpty else { return 0 }
        var (count, offset): (Int, Int) = (0, 0)
        while offset + needle.count <= bytes.count,
            let found: UnsafeMutableRawPointer = memchr(
                start + offset, Int32(needle[0]), bytes.count - offset - needle.count + 1)
        {
            offset = UnsafeRawPointer(found) - start
            let isHit: Bool = memcmp(found, needle, needle.count) == 0
            count += isHit ? 1 : 0
            offset += isHit ? needle.count : 1
        }
        return count
    }

    /// Counts the answers to the socket's own changes, whose ccids have this prefix.
    private func countAnswers(_ socket: HostileSocket, _ start: String) {
        socket.answered = 0
        socket.listener = { [unowned socket] in socket.answered += Self.occurrences(of: start, in: $0) }
    }

    /// Repeatedly edits the first version of a text that has had 1,500 versions since.
    func editLate(_ port: UInt16, _ token: String, _ end: UInt64) {
        let length: Int = Self.words(Self.lateBytes).utf16.count
        HostileSwarm(port: port, count: 4).run(
            until: end,
            opened: { socket in
                countAnswers(socket, "late-\(socket.number)-\(socket.generation)-")
                socket.send(Self.hello(token, "editor-\(socket.number)"))
            }
        ) { socket in
            while socket.sent - socket.answered < 32 {
                let place: Int = socket.sent * 104_729 % (length - 10)
                let delta = "=\(place)\\t-3\\t+late\\t=\(length - place - 3)"
                socket.send(
                    "0:c:{\"id\":\"text\",\"o\":\"M\",\"sv\":1,\"v\":{\"t\":{\"o\":\"d\",\"v\":\"\(delta)\"}},"
                        + "\"ccid\":\"late-\(socket.number)-\(socket.generation)-\(socket.sent)\"}")
            }
        }
    }

    /// Replaces an object of 900 kB of many members, with a delta of many operations beside it.
    func editCostly(_ port: UInt16, _ token: String, _ end: UInt64) {
        let members: String = (0..<60_000).map { "\"m\($0)\":[\($0)]" }.joined(separator: ",")
        HostileSwarm(port: port, count: 4).run(
            until: end,
            opened: { socket in
                countAnswers(socket, "costly-\(socket.number)-\(socket.generation)-")
                socket.send(Self.hello(token, "editor-\(socket.number)"))
            }
        ) { socket in
            while socket.sent - socket.answered < 8, socket.pending < 4 << 20 {
                let id = "costly-\(socket.number)-\(socket.generation)-\(socket.sent)"
                let field = "{\"o\":\"+\",\"v\":{\(members),\"n\":\(socket.sent)}}"
                socket.send(
                    "0:c:{\"id\":\"big\(socket.number)\",\"o\":\"M\",\"v\":{\"f\":\(field)},\"ccid\":\"\(id)\"}")
            }
        }
    }
}
