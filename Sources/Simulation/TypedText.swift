/// What people typed into one text and what they deleted again, character by character. Nobody types a character twice.
struct TypedText {
    /// Typed and kept.
    private(set) var kept = Set<UInt32>()
    /// Deleted by somebody who saw it.
    private(set) var deleted = Set<UInt32>()
    /// There once or not at all: a restore of the server undid what became of them.
    private(set) var doubtful = Set<UInt32>()
    /// Nobody can say any more what it must hold.
    private(set) var isAbandoned = false

    mutating func abandon() { isAbandoned = true }

    /// Its object has to be there, whatever the text is: after a restore of the server a client still had it.
    private(set) var mustStand = false
    mutating func stand() { mustStand = true }

    /// A sealed object of a server that was restored: nothing is taken back silently, so all that was typed must be
    /// there or have been given up by somebody; what was deleted may be there again.
    private(set) var isRestoredSealed = false

    mutating func restoredSealed() {
        isRestoredSealed = true
        doubtful.formUnion(deleted)
        deleted = []
    }

    /// - Parameter certain: what of the text the restored server and the clients' unconfirmed edits hold.
    mutating func restored(to certain: Set<UInt32>) {
        doubtful.formUnion(deleted)
        doubtful.formUnion(kept.subtracting(certain))
        kept.formIntersection(certain)
        deleted = []
    }

    mutating func type(_ scalars: [Unicode.Scalar]) { kept.formUnion(scalars.map(\.value)) }

    mutating func delete(_ scalars: some Sequence<Unicode.Scalar>) {
        for scalar in scalars {
            // What may be gone anyway may also come back.
            if kept.remove(scalar.value) != nil { deleted.insert(scalar.value) }
        }
    }

    /// What is wrong with `text`; nil: nothing.
    /// - Parameters:
    ///   - forgivesReturns: whether a deleted character may be there once, because a whole object took the place of the
    ///     change that deleted it.
    ///   - givenUp: characters that people chose against after a restore of a sealed bucket, or that they were told of
    ///     as the losing side of a conflict. They may be missing, or there twice: two devices may both bring them back.
    func flaw(in text: String, forgivesReturns: Bool, givenUp: Set<UInt32> = []) -> String? {
        if isAbandoned { return nil }
        var counts = [UInt32: Int]()
        for scalar in text.unicodeScalars { counts[scalar.value, default: 0] += 1 }
        for value in kept.sorted() where counts[value] != 1 {
            if givenUp.contains(value) || (isRestoredSealed && counts[value] ?? 0 > 0) { continue }
            return "\(name(value)) was typed and is there \(counts[value] ?? 0) times"
        }
        for (value, count) in counts.sorted(by: { $0.key < $1.key }) where !kept.contains(value) {
            if doubtful.contains(value) {
                // Under one ccid for good, however often the server is restored (0082).
                if count == 1 || isRestoredSealed { continue }
                return "\(name(value)) was in doubt after a restore and is there \(count) times"
            }
            if !deleted.contains(value) { return "\(name(value)) is there and nobody typed it" }
            // Also what was deleted since: another device keeps its own, where it still stands.
            if isRestoredSealed { continue }
            if count > 1 || !forgivesReturns { return "\(name(value)) was deleted and is there \(count) times" }
        }
        return nil
    }

    private func name(_ value: UInt32) -> String {
        Unicode.Scalar(value).map { "'\($0)'" } ?? "U+\(String(value, radix: 16))"
    }
}

/// Hands out characters, each once: one unit of UTF-16 mostly, two now and then. Their numbers tell the account.
struct MarkerSource {
    /// As many accounts can be told apart.
    private static let stride: UInt32 = 4
    private static let (plane, planeEnd): (UInt32, UInt32) = (0x4E00, 0x9E00)
    private static let (farPlane, farPlaneEnd): (UInt32, UInt32) = (0x2_0000, 0x4_0000)
    private static let marks: UInt32 = 0x2840

    private var count: UInt32

    init(account: Int) { count = UInt32(account) % Self.stride }

    mutating func next() -> Unicode.Scalar? {
        count += Self.stride
        let isFar = count / Self.stride % 5 == 0 || count >= Self.planeEnd - Self.plane
        return Unicode.Scalar((isFar ? Self.farPlane : Self.plane) + count)
    }

    /// For strings that nobody types.
    static func mark(of account: Int) -> String {
        Unicode.Scalar(marks + UInt32(account) % stride).map { String(Character($0)) } ?? ""
    }

    /// Of a character that only one account has; nil: anybody's.
    private static func account(of value: UInt32) -> Int? {
        switch value {
        case plane..<planeEnd, farPlane..<farPlaneEnd, marks..<(marks + stride): Int(value % stride)
        default: nil
        }
    }

    /// The first account besides `own` whose characters stand in a message, as they are or with percent signs as
    /// differences have them.
    static func stranger(in text: [UInt8], besides own: Int) -> Int? {
        var (value, rest): (UInt32, Int) = (0, 0)
        var place = 0
        while place < text.count {
            var byte: UInt8 = text[place]
            place += 1
            if byte == 0x25, place + 1 < text.count, let high = hex(text[place]), let low = hex(text[place + 1]) {
                byte = high << 4 | low
                place += 2
            }
            switch byte {
            case 0xE0...0xEF: (value, rest) = (UInt32(byte & 0x0F), 2)
            case 0xF0...0xF7: (value, rest) = (UInt32(byte & 0x07), 3)
            case 0x80...0xBF where rest > 0:
                (value, rest) = (value << 6 | UInt32(byte & 0x3F), rest - 1)
                if rest == 0, let found = account(of: value), found != own { return found }
            default: rest = 0
            }
        }
        return nil
    }

    private static func hex(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x37
        case 0x61...0x66: byte - 0x57
        default: nil
        }
    }
}
