import ThicketCrypto
import ThicketPlatform
import ThicketTestSupport

/// The bytes of one connection of the attacker, in pieces with pauses between them, and the way it ends.
public struct HostileCase: Sendable {
    public let number: Int
    public let name: String
    public private(set) var pieces: [[UInt8]]
    /// Whether it resets the connection instead of closing it.
    public let isReset: Bool

    /// The same number, seed and corpus give the same bytes.
    public init(number: Int, seed: UInt64, corpus: HostileCorpus) {
        var random = SeededRandom(seed: seed &+ UInt64(number) &* 0x9E37_79B9)
        _ = random.next()
        let entry = corpus.entries[Int(random.next() % UInt64(corpus.entries.count))]
        var bytes = entry.bytes
        var ways = [String]()
        // One in twelve is sent unchanged, so that the paths to the broken parts stay reachable.
        let rounds = random.next() % 12 == 0 ? 0 : 1 + random.next() % 3
        for _ in 0..<rounds {
            let way = HostileWay.all[Int(random.next() % UInt64(HostileWay.all.count))]
            ways.append(way.name)
            bytes = way.change(bytes, corpus, &random)
            if bytes.count > 1 << 18 { bytes.removeLast(bytes.count - 1 << 18) }
        }
        // Every other one gets its true length: otherwise the server would only wait for the rest of many.
        let isFramed = ways.allSatisfy { !["another length", "wrong chunks", "pipelined"].contains($0) }
        if isFramed, random.next() % 2 == 0 { bytes = HostileWay.withTrueLength(bytes) }
        self.number = number
        name = "\(entry.name): \(ways.isEmpty ? "as it is" : ways.joined(separator: ", "))"
        isReset = random.next() % 4 == 0
        pieces = [bytes]
        if random.next() % 4 == 0 { split(&random) }
    }

    /// Cuts the bytes into up to twelve pieces.
    private mutating func split(_ random: inout SeededRandom) {
        let bytes = pieces[0]
        guard bytes.count > 1 else { return }
        let cuts = Set(
            (0..<(1 + random.next() % 11)).map { _ in 1 + Int(random.next() % UInt64(bytes.count - 1)) }
        )
        .sorted()
        pieces = zip([0] + cuts, cuts + [bytes.count]).map { Array(bytes[$0..<$1]) }
    }
}

/// A way to break a valid request.
struct HostileWay: Sendable {
    let name: String
    let change: @Sendable ([UInt8], HostileCorpus, inout SeededRandom) -> [UInt8]

    init(
        _ name: String, _ change: @escaping @Sendable ([UInt8], HostileCorpus, inout SeededRandom) -> [UInt8]
    ) { (self.name, self.change) = (name, change) }

    static let all: [HostileWay] = [
        HostileWay("bits flipped") { bytes, _, random in
            var bytes = bytes
            for _ in 0...random.next() % 8 where !bytes.isEmpty {
                bytes[place(in: bytes, &random)] ^= 1 << UInt8(random.next() % 8)
            }
            return bytes
        },
        HostileWay("cut short") { bytes, _, random in Array(bytes[..<place(in: bytes, &random)]) },
        HostileWay("a piece cut out") { bytes, _, random in
            let (start, end): (Int, Int) = (place(in: bytes, &random), place(in: bytes, &random))
            return Array(bytes[..<min(start, end)] + bytes[max(start, end)...])
        },
        HostileWay("spliced with another") { bytes, corpus, random in
            let other = corpus.entries[Int(random.next() % UInt64(corpus.entries.count))].bytes
            return Array(bytes[..<place(in: bytes, &random)] + other[place(in: other, &random)...])
        },
        HostileWay("a line repeated", repeatLine),
        HostileWay("a huge number", blowUp),
        HostileWay("another length", changeLength),
        HostileWay("wrong chunks", chunk),
        HostileWay("pipelined") { bytes, corpus, random in
            (0...random.next() % 7).reduce(bytes) { all, _ in
                all + corpus.entries[Int(random.next() % UInt64(corpus.entries.count))].bytes
            }
        },
        HostileWay("a run put in") { bytes, _, random in
            let letters: [UInt8] = [0, 0x20, 0x0A, 0x0D, 0x22, 0x5B, 0x7B, 0x25, 0x3A, 0x61, 0xC3, 0xFF]
            let count: Int = 1 << Int(random.next() % 15)
            let run = [UInt8](repeating: letters[Int(random.next() % UInt64(letters.count))], count: count)
            let start = place(in: bytes, &random)
            return Array(bytes[..<start] + run + bytes[start...])
        },
        HostileWay("a token changed", changeToken),
        HostileWay("noise") { bytes, _, random in
            let start = place(in: bytes, &random)
            return Array(bytes[..<start])
                + (0..<(1 + random.next() % 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        },
        HostileWay("line ends changed") { bytes, _, random in
            let ends: [[UInt8]] = [[10], [13], [13, 10, 32], [0, 13, 10], [13, 13, 10]]
            let end: [UInt8] = ends[Int(random.next() % UInt64(ends.count))]
            return bytes.flatMap { byte in byte == 13 && random.next() % 3 == 0 ? end : [byte] }
        },
    ]

    /// The same with the true `content-length` of the first request's body.
    static func withTrueLength(_ bytes: [UInt8]) -> [UInt8] {
        let (name, mark): ([UInt8], [UInt8]) = (Array("content-length: ".utf8), [13, 10, 13, 10])
        guard let end: Int = bytes.indices.first(where: { bytes[$0...].starts(with: mark) }),
            let start = bytes[..<end].indices.first(where: { bytes[$0...].starts(with: name) }),
            let stop = bytes[start...].firstIndex(of: 13)
        else { return bytes }
        return Array(bytes[..<(start + name.count)]) + Array("\(bytes.count - end - 4)".utf8) + bytes[stop...]
    }

    // MARK: Parts

    private static func place(in bytes: [UInt8], _ random: inout SeededRandom) -> Int {
        bytes.isEmpty ? 0 : Int(random.next() % UInt64(bytes.count))
    }

    /// The line of the head around a place, with its end.
    private static func repeatLine(_ bytes: [UInt8], _: HostileCorpus, _ random: inout SeededRandom) -> [UInt8] {
        let middle = place(in: bytes, &random)
        guard let start = bytes[..<middle].lastIndex(of: 10), let end = bytes[middle...].firstIndex(of: 10)
        else { return bytes }
        let line = Array(bytes[(start + 1)...end])
        let times = [1, 2, 70, 400][Int(random.next() % 4)]
        return Array(bytes[...end]) + (0..<times).flatMap { _ in line } + bytes[(end + 1)...]
    }

    private static let numbers = [
        "18446744073709551616", "-1", "9223372036854775807", "9223372036854775808", "4294967295", "1e400", "-0", "0x10",
        "1e-400", "99999999999999999999999999999999", "00", "1.5", "+5", "null", "\"x\"", "[]", "2147483648", "1E5",
    ]

    /// Replaces a row of digits by another number.
    private static func blowUp(_ bytes: [UInt8], _: HostileCorpus, _ random: inout SeededRandom) -> [UInt8] {
        let isDigit: (UInt8) -> Bool = { (0x30...0x39).contains($0) }
        guard let start = bytes[place(in: bytes, &random)...].firstIndex(where: isDigit) else { return bytes }
        let end: Int = bytes[start...].firstIndex { !isDigit($0) } ?? bytes.count
        return Array(bytes[..<start]) + Array(numbers[Int(random.next() % UInt64(numbers.count))].utf8) + bytes[end...]
    }

    /// Another `content-length`, or another length of a WebSocket's frame.
    private static func changeLength(_ bytes: [UInt8], _: HostileCorpus, _ random: inout SeededRandom) -> [UInt8] {
        let name: [UInt8] = Array("content-length: ".utf8)
        if let start = bytes.indices.first(where: { bytes[$0...].starts(with: name) }) {
            let end: Int = bytes[(start + name.count)...].firstIndex(of: 13) ?? bytes.count
            let known = Int(String(decoding: bytes[(start + name.count)..<end], as: UTF8.self)) ?? 0
            let values =
                numbers + ["\(known &+ 1)", "\(max(0, known) / 2)", "\(known), \(known)", " \(known)\t", ""]
            let value: [UInt8] = Array(values[Int(random.next() % UInt64(values.count))].utf8)
            return Array(bytes[..<(start + name.count)]) + value + bytes[end...]
        }
        let starts: [Int] = bytes.indices.dropLast(10).filter { bytes[$0] == 0x81 && bytes[$0 + 1] >= 0x80 }
        guard !starts.isEmpty else { return bytes }
        let start: Int = starts[Int(random.next() % UInt64(starts.count))]
        var changed = bytes
        changed[start] = [0x81, 0x01, 0x80, 0x82, 0xF1, 0x88, 0x89, 0x8F][Int(random.next() % 8)]
        changed[start + 1] = [0xFF, 0xFE, 0x7E, 0x7F, 0x80, 0xFD][Int(random.next() % 6)]
        for offset in 2..<10 {
            changed[start + offset] = random.next() % 2 == 0 ? 0 : UInt8(truncatingIfNeeded: random.next())
        }
        return changed
    }

    /// The body again, in chunks some of which are wrong.
    private static func chunk(_ bytes: [UInt8], _: HostileCorpus, _ random: inout SeededRandom) -> [UInt8] {
        let mark: [UInt8] = [13, 10, 13, 10]
        guard let end: Int = bytes.indices.first(where: { bytes[$0...].starts(with: mark) }) else { return bytes }
        let head: [UInt8] = Array(
            String(decoding: bytes[..<end], as: UTF8.self).split(separator: "\r\n")
                .filter { random.next() % 4 == 0 || !$0.hasPrefix("content-length") }.joined(separator: "\r\n").utf8)
        var body: [UInt8] = Array("\r\ntransfer-encoding: chunked\r\n\r\n".utf8)
        let sizes = [
            "0", "ffffffffffffffff", "-1", "8000000000000000", "", "g", "5;x=\"y\"", "0x5", "00000005",
        ]
        var rest = bytes[(end + 4)...]
        while !rest.isEmpty {
            let piece = rest.prefix(1 + Int(random.next() % 40))
            rest = rest.dropFirst(piece.count)
            let size =
                random.next() % 5 == 0 ? sizes[Int(random.next() % UInt64(sizes.count))] : .init(piece.count, radix: 16)
            body += Array("\(size)\r\n".utf8) + piece + (random.next() % 9 == 0 ? [] : [13, 10])
        }
        return head + body + Array((random.next() % 3 == 0 ? "0\r\n" : "0\r\n\r\n").utf8)
    }

    /// Works on a text that looks like a token: a JSON web token, or 32 hex digits.
    private static func changeToken(_ bytes: [UInt8], _: HostileCorpus, _ random: inout SeededRandom) -> [UInt8] {
        let isPart: (UInt8) -> Bool = { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || byte == 0x2D || byte == 0x5F || byte == 0x2E
        }
        var runs = [Range<Int>]()
        var start = 0
        for place in 0...bytes.count where place == bytes.count || !isPart(bytes[place]) {
            if place - start >= 32 { runs.append(start..<place) }
            start = place + 1
        }
        guard !runs.isEmpty else { return bytes }
        let run = runs[Int(random.next() % UInt64(runs.count))]
        var parts = bytes[run].split(separator: 0x2E, omittingEmptySubsequences: false).map(Array.init)
        let part = Int(random.next() % UInt64(parts.count))
        switch random.next() % 7 {
        case 0: parts[part] = []
        case 1: parts.swapAt(0, part)
        case 2: parts.append(parts[part])
        case 3: parts[0] = Array(Base64.encodeURL(Array(#"{"alg":"none","typ":"JWT","auth":"v2"}"#.utf8)).utf8)
        case 4: parts[part] += parts[part]
        case 5: parts[part].reverse()
        default: parts[part] = Array(parts[part].dropLast(1 + Int(random.next() % 4)))
        }
        return Array(bytes[..<run.lowerBound] + parts.joined(separator: [0x2E]) + bytes[run.upperBound...])
    }
}
