/// What people typed into one text and what they deleted again, character by character. Each character is typed only
/// once.
struct TypedText {
    /// Typed and kept.
    private(set) var kept = Set<UInt32>()
    /// Deleted by a person that saw it.
    private(set) var deleted = Set<UInt32>()
    /// Present once or not at all: a restore of the server undid what happened to them.
    private(set) var doubtful = Set<UInt32>()
    /// The expected content is not known any more.
    private(set) var isAbandoned = false

    mutating func abandon() { isAbandoned = true }

    /// The object must exist, whatever its text is: after a restore of the server a client still had it.
    private(set) var mustStand = false
    mutating func stand() { mustStand = true }

    /// A sealed object of a server that was restored: nothing is undone silently, so everything typed must exist or
    /// have been given up by a user; deleted characters may exist again.
    private(set) var isRestoredSealed = false

    mutating func restoredSealed() {
        isRestoredSealed = true
        doubtful.formUnion(deleted)
        deleted = []
    }

    /// - Parameter certain: the characters in the restored server and in the clients' unacknowledged edits.
    mutating func restored(to certain: Set<UInt32>) {
        doubtful.formUnion(deleted)
        doubtful.formUnion(kept.subtracting(certain))
        kept.formIntersection(certain)
        deleted = []
    }

    mutating func type(_ scalars: [Unicode.Scalar]) { kept.formUnion(scalars.map(\.value)) }

    mutating func delete(_ scalars: some Sequence<Unicode.Scalar>) {
        for scalar in scalars {
            // A character that may be missing may also come back.
            if kept.remove(scalar.value) != nil { deleted.insert(scalar.value) }
        }
    }

    /// The violation in `text`; nil: none.
    /// - Parameters:
    ///   - forgivesReturns: a deleted character may be present once, because a whole object replaced the change that
    ///     deleted it.
    ///   - givenUp: characters that users decided against after a restore of a sealed bucket, or that were reported as
    ///     the losing side of a conflict. They may be missing, or present twice: two devices may both bring them back.
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
                // It keeps one ccid, however often the server is restored (0005).
                if count == 1 || isRestoredSealed { continue }
                return "\(name(value)) was in doubt after a restore and is there \(count) times"
            }
            if !deleted.contains(value) { return "\(name(value)) is present and was never typed" }
            // Also characters that were deleted since: another device may keep its own state, which still has them.
            if isRestoredSealed { continue }
            if count > 1 || !forgivesReturns { return "\(name(value)) was deleted and is there \(count) times" }
        }
        return nil
    }

    private func name(_ value: UInt32) -> String {
        Unicode.Scalar(value).map { "'\($0)'" } ?? "U+\(String(value, radix: 16))"
    }
}

/// Hands out characters, each once: mostly one UTF-16 unit, sometimes two. Their numbers identify the account.
struct MarkerSource {
    /// How many accounts can be distinguished.
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

    /// The mark in strings that are not typed.
    static func mark(of account: Int) -> String {
        Unicode.Scalar(marks + UInt32(account) % stride).map { String(Character($0)) } ?? ""
    }

    /// The account of a character that only one account uses; nil: all use it.
    private static func account(of value: UInt32) -> Int? {
        switch value {
        case plane..<planeEnd, farPlane..<farPlaneEnd, marks..<(marks + stride): Int(value % stride)
        default: nil
        }
    }

    /// The first account besides `own` whose characters occur in a message, plain or percent-encoded as in differences.
    static func foreignAccount(in text: [UInt8], besides own: Int) -> Int? {
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
